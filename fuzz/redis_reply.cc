// Replies as a broken or hostile server might send them: lean and full reading agree, maps stay within their bounds.
//
// The first byte says whether TLS is spoken; the rest is read as a reply, as a map of a cluster, as an error and as a
// message of a sentinel.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "redis/fault.h"
#include "redis/slot.h"
#include "redis/topology.h"
#include "resp/integers.h"
#include "resp/reply.h"

namespace {

using weir::redis::Endpoint;
using weir::resp::IntegersReply;
using weir::resp::Status;

const Endpoint kAsked{.host = "10.0.0.1", .port = 6379};

void require(bool condition) {
  if (!condition) std::abort();
}

void flatten(const weir::resp::Value& value, std::vector<std::int64_t>& out) {
  if (value.type == weir::resp::Type::integer) out.push_back(value.integer);
  for (const auto& item : value.items) flatten(item, out);
}

// What the lean reading takes, the parser reads alike; what it waits for, the parser waits for, too, or refuses.
void compare_readings(std::string_view input) {
  std::vector<std::int64_t> integers;
  const IntegersReply lean = weir::resp::read_integers(input, integers);
  const auto full = weir::resp::ReplyParser().parse(input);
  if (lean.status == IntegersReply::Status::need_more) require(full.status != Status::done);
  if (lean.status != IntegersReply::Status::done) return;
  require(full.status == Status::done && full.consumed == lean.consumed);
  std::vector<std::int64_t> expected;
  flatten(full.value, expected);
  require(integers == expected);
}

void check_map(const std::optional<weir::redis::ClusterMap>& map) {
  if (!map) return;
  require(!map->shards.empty());
  for (const auto& shard : map->shards) {
    require(!shard.master.host.empty() && shard.master.port != 0);
    require(!shard.slots.empty());
    for (const auto& range : shard.slots) {
      require(range.first >= 0 && range.first <= range.last && range.last < weir::redis::kSlots);
    }
  }
}

void check_error(std::string_view text) {
  weir::redis::kind_of_error(text);
  require(weir::redis::fit_for_log(text).size() <= weir::redis::kFaultTextMax + 3);
  if (const auto redirection = weir::redis::read_redirection(text, kAsked)) {
    require(redirection->slot >= 0 && redirection->slot < weir::redis::kSlots);
    require(!redirection->to.host.empty() && redirection->to.port != 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  compare_readings(text);
  check_error(text);
  const auto reply = weir::resp::ReplyParser().parse(text);
  if (reply.status == Status::done) {
    check_map(weir::redis::read_shards(reply.value, kAsked, data[0] % 2 == 1));
    check_map(weir::redis::read_slots(reply.value, kAsked));
    if (const auto master = weir::redis::read_master_address(reply.value)) require(master->port != 0);
  }
  if (const auto master = weir::redis::read_switch(text, "main")) require(!master->host.empty());
  if (const auto master = weir::redis::read_promotion(text, "main")) require(!master->host.empty());
  require(weir::redis::slot_of(text) < weir::redis::kSlots);
  return 0;
}
