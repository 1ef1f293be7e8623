// Builds the requests, and handles their results. See sync_sender.h.
#include "fleet/sync_sender.h"

#include <algorithm>
#include <utility>

#include "fleet/kept_request.h"
#include "fleet/key_name.h"
#include "fleet/redis_key.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kReportsMax = 32;  // in flight, so that no check waits long for them
constexpr std::size_t kBatchMax = 100;   // keys of a write-back
constexpr std::size_t kBatchesMax = 4;   // batches before a pause
constexpr Micros kWriteRest{100};        // minimum pause between two batches
constexpr Micros kWriteAgain{20'000};    // after a batch was not answered

}  // namespace

class SyncSender::Task final : public KeptRequest {
 public:
  using KeptRequest::KeptRequest;
  OnResult on_result{};
};

// Returns false if it has failed at once. `on_result` is called in any case.
bool SyncSender::submit(std::unique_ptr<Task> task, OnResult on_result, Micros now) {
  Task& sent = *task.release();
  sent.on_result = std::move(on_result);
  if (pipeline_->submit(sent, *this, now)) return true;
  on_done(sent);
  return false;
}

void SyncSender::on_done(ScriptRequest& request) {
  const std::unique_ptr<Task> task(static_cast<Task*>(&request));
  task->on_result(*task);
}

void SyncSender::turn(Micros now, std::size_t unsynced_nodes) {
  unsynced_nodes_ = unsynced_nodes;
  send_undos(now);
  if (pipeline_->is_any_open() || now < write_at_) return;
  send_permits(now);
  send_write_backs(now);
}

Micros SyncSender::due(Micros now) const {
  const bool has_more = !backs_.is_empty() || !permits_.is_empty();
  const Micros undo_at = undos_.due(now);
  if (!has_more || writes_ > 0 || pipeline_->is_any_open()) return undo_at;
  return std::min(undo_at, std::max(write_at_, now + kWriteRest));
}

void SyncSender::send_permits(Micros now) {
  if (permits_.is_empty() || reports_ >= kReportsMax) return;
  for (UnsyncedPermit& permit : permits_.take(kReportsMax - reports_, now)) {
    const Charge charge{.key = permit.key, .limit = &permit.limit, .cost = permit.cost};
    auto task = std::make_unique<Task>(ScriptRequest{.what = What::acquire, .charges = {&charge, 1}, .id = permit.id});
    const auto on_result = [this, permit = std::move(permit)](const ScriptRequest& request) {
      --reports_;
      if (permits_.finish(permit, request.state != State::failed)) release(permit);
    };
    ++reports_;
    submit(std::move(task), on_result, now);
  }
}

// The result does not matter.
void SyncSender::release(const UnsyncedPermit& permit) {
  const Charge charge{.key = permit.key};
  ++reports_;
  submit(
      std::make_unique<Task>(ScriptRequest{.what = What::release, .charges = {&charge, 1}, .id = permit.id}),
      [this](const ScriptRequest&) { --reports_; }, redis::steady_now());
}

void SyncSender::send_undos(Micros now) {
  const auto can_be_sent = [&](const Undo& one) {
    return !pipeline_->is_open(pipeline_->slot_of(subject_of(one.key)));
  };
  for (Undo& undo : undos_.take(now, can_be_sent)) {
    const Charge charge = undo.charge();
    auto task = std::make_unique<Task>(
        ScriptRequest{.what = undo.asks(), .charges = {&charge, 1}, .id = undo.id, .charged_us = undo.charged_us});
    const auto on_result = [this, undo = std::move(undo)](const ScriptRequest& request) {
      if (request.doubt) request.doubt->decide(false);
      const bool is_undone = undos_.finish(undo, request.state, request.is_in_doubt, redis::steady_now());
      if (is_undone) invalidation_.publish(KeyName(undo.limit.algorithm, undo.key));
    };
    submit(std::move(task), on_result, now);
  }
}

// send_write_backs()
//
// Sends a few batches, and pauses when all are answered (write_back.h). Calls of other connections are executed
// between two batches. In a cluster a batch is one key, and many are in flight. Building batches takes this thread
// some time, which counts as part of the pause.
void SyncSender::send_write_backs(Micros now) {
  if (writes_ > 0) return;
  const bool is_cluster = pipeline_->slot_of({}) >= 0;
  const Micros begun = redis::steady_now();
  while (writes_ < (is_cluster ? kReportsMax : kBatchesMax)) {
    auto batch = backs_.take(is_cluster ? 1 : kBatchMax, now);
    if (!batch) break;
    ++writes_;
    auto task = std::make_unique<Task>(batch->request({}));
    const auto sent = std::make_shared<WriteBack>(*std::move(batch));  // never copied: its charges point into it
    const auto on_result = [this, sent](const ScriptRequest& request) { on_written(std::move(*sent), request); };
    if (!submit(std::move(task), on_result, now)) break;
  }
  if (writes_ == 0) return;
  pipeline_->flush(now);
  wrote_at_ = redis::steady_now();
  making_ = wrote_at_ - begun;
}

void SyncSender::on_written(WriteBack batch, const ScriptRequest& request) {
  const Micros now = redis::steady_now();
  --writes_;
  backs_.finish(std::move(batch), WriteBacks::reply_to(request), now);
  if (request.state == State::failed) {
    write_at_ = now + kWriteAgain;
  } else if (writes_ == 0) {
    const std::uint64_t unsent = pipeline_->options().totals ? pipeline_->options().totals->counts().unsent : 0;
    const bool is_overloaded = std::exchange(unsent_, unsent) != unsent && !handover_.is_on();
    const Micros rest = rest_after_write_back(now - wrote_at_, unsynced_nodes_, is_overloaded);
    write_at_ = std::max(write_at_, now + rest - making_);
  }
}

}  // namespace weir::fleet
