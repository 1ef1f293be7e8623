// Sends commands and collects their replies. See store_commands.h.
#include "fleet/store_commands.h"

#include <string_view>

#include "redis/slot.h"

namespace weir {
namespace {

tl::unexpected<Error> nobody() {
  return fail(ErrorCode::unavailable, "Redis is unavailable; try again when it is back");
}

}  // namespace

std::vector<StoreAnswer> StoreCommands::run(StoreCommand command, const std::function<void()>& wake) {
  const auto job = std::make_shared<Job>();
  job->command = std::move(command);
  std::unique_lock lock(mutex_);
  if (has_ended_) return {{.value = nobody()}};
  posted_.push_back(job);
  lock.unlock();
  wake();
  lock.lock();
  changed_.wait(lock, [&] { return job->is_done; });
  return std::move(job->answers);
}

void StoreCommands::finish(Job& job) {
  const std::lock_guard lock(mutex_);
  if (job.answers.empty()) job.answers.push_back({.value = nobody()});
  job.is_done = true;
  changed_.notify_all();
}

void StoreCommands::turn(Lane& lane, Micros now) {
  std::vector<std::shared_ptr<Job>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (const std::shared_ptr<Job>& job : posted) {
    ++job->left;  // our own count, until all are sent
    if (!job->command.is_for_all) {
      send(lane, job, redis::kAnyNode, {}, now);
    } else {
      const std::vector<redis::NodeState> masters = lane.client().masters();
      for (const redis::NodeState& node : masters) send(lane, job, node.index, node.address, now);
      if (masters.empty()) send(lane, job, redis::kAnyNode, {}, now);  // the client reports why no server is known
    }
    if (--job->left == 0) finish(*job);
  }
}

void StoreCommands::send(Lane& lane, const std::shared_ptr<Job>& job, int node, std::string address, Micros now) {
  const std::vector<std::string_view> words(job->command.words.begin(), job->command.words.end());
  const std::uint64_t tag = next_tag_++;
  under_way_.emplace(tag, std::pair{job, job->answers.size()});
  job->answers.push_back({.address = std::move(address), .value = nobody()});
  ++job->left;
  lane.client().send({.words = words,
                      .script = job->command.script,
                      .slot = job->command.key.empty() ? redis::kAnySlot : redis::slot_of(job->command.key),
                      .node = node,
                      .deadline = now + kPatience},
                     {this, tag});
}

void StoreCommands::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  const auto found = under_way_.find(tag);
  if (found == under_way_.end()) return;
  const auto [job, place] = std::move(found->second);
  under_way_.erase(found);
  if (reply.is_ok() && reply.value != nullptr) {
    job->answers[place].value = *reply.value;
  } else if (!reply.is_ok()) {
    job->answers[place].value = fail(ErrorCode::unavailable, "Redis: " + std::string(reply.fault->text));
  }
  if (--job->left == 0) finish(*job);
}

void StoreCommands::end() {
  std::vector<std::shared_ptr<Job>> posted;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    posted.swap(posted_);
  }
  for (const std::shared_ptr<Job>& job : posted) finish(*job);
}

}  // namespace weir
