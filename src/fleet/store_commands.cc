// Sends commands and collects their replies. See store_commands.h.
#include "fleet/store_commands.h"

#include <string_view>

#include "redis/slot.h"

namespace weir::fleet {
namespace {

tl::unexpected<Error> unavailable() {
  return fail(ErrorCode::unavailable, "Redis is unavailable; try again when it is back");
}

}  // namespace

std::vector<StoreAnswer> StoreCommands::run(StoreCommand command, const std::function<void()>& wake) {
  const auto job = std::make_shared<Job>();
  job->command = std::move(command);
  base::MutexLock lock(mutex_);
  if (has_ended_) return {{.value = unavailable()}};
  posted_.push_back(job);
  lock.unlock();
  wake();
  lock.lock();
  while (!job->is_done) changed_.wait(lock);
  return std::move(job->answers);
}

void StoreCommands::finish(Job& job) {
  const base::MutexLock lock(mutex_);
  if (job.answers.empty()) job.answers.push_back({.value = unavailable()});
  job.is_done = true;
  changed_.notify_all();
}

void StoreCommands::turn(ScriptPipeline& pipeline, Micros now) {
  std::vector<std::shared_ptr<Job>> posted;
  {
    const base::MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (const std::shared_ptr<Job>& job : posted) {
    ++job->left;  // our own count, until all are sent
    if (!job->command.is_for_all) {
      send(pipeline, job, redis::kAnyNode, {}, now);
    } else {
      const std::vector<redis::NodeState> masters = pipeline.client().masters();
      for (const redis::NodeState& node : masters) send(pipeline, job, node.index, node.address, now);
      if (masters.empty()) send(pipeline, job, redis::kAnyNode, {}, now);  // the client reports why no server is known
    }
    if (--job->left == 0) finish(*job);
  }
}

void StoreCommands::send(ScriptPipeline& pipeline, const std::shared_ptr<Job>& job, int node, std::string address,
                         Micros now) {
  const std::vector<std::string_view> words(job->command.words.begin(), job->command.words.end());
  const std::uint64_t tag = next_tag_++;
  in_flight_.emplace(tag, std::pair{job, job->answers.size()});
  job->answers.push_back({.address = std::move(address), .value = unavailable()});
  ++job->left;
  pipeline.client().send({.words = words,
                          .script = job->command.script,
                          .slot = job->command.key.empty() ? redis::kAnySlot : redis::slot_of(job->command.key),
                          .node = node,
                          .deadline = now + kTimeout},
                         {this, tag});
}

void StoreCommands::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  const auto found = in_flight_.find(tag);
  if (found == in_flight_.end()) return;
  const auto [job, place] = std::move(found->second);
  in_flight_.erase(found);
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
    const base::MutexLock lock(mutex_);
    has_ended_ = true;
    posted.swap(posted_);
  }
  for (const std::shared_ptr<Job>& job : posted) finish(*job);
}

}  // namespace weir::fleet
