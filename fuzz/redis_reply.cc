// Fuzzes replies of a broken or hostile Redis: the fast reader of integers agrees with the reply parser, and cluster
// maps and redirections stay within their bounds.
//
// The first byte of an input says whether the connection uses TLS. The rest is parsed as a reply, as a cluster map, as
// an error and as a message of a Sentinel.
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "redis/fault.h"
#include "redis/slot.h"
#include "redis/topology.h"
#include "resp/integers.h"
#include "resp/reply.h"

namespace {

using weir::base::Endpoint;
using weir::resp::IntegersReply;
using weir::resp::Status;

const Endpoint kAsked{.host = "10.0.0.1", .port = 6379};

void flatten(const weir::resp::Value& value, std::vector<std::int64_t>& out) {
  if (value.type == weir::resp::Type::integer) out.push_back(value.integer);
  for (const auto& item : value.items) flatten(item, out);
}

// If read_integers() accepts the bytes, the parser reads the same integers. If it needs more bytes, the parser does not
// complete a reply either.
void compare_readings(std::string_view input) {
  std::vector<std::int64_t> integers;
  const IntegersReply fast = weir::resp::read_integers(input, integers);
  const auto full = weir::resp::ReplyParser().parse(input);
  if (fast.status == IntegersReply::Status::need_more) WEIR_ASSERT(full.status != Status::done);
  if (fast.status != IntegersReply::Status::done) return;
  WEIR_ASSERT(full.status == Status::done && full.consumed == fast.consumed);
  std::vector<std::int64_t> expected;
  flatten(full.value, expected);
  WEIR_ASSERT(integers == expected);
}

void check_map(const std::optional<weir::redis::ClusterMap>& map) {
  if (!map) return;
  WEIR_ASSERT(!map->shards.empty());
  for (const auto& shard : map->shards) {
    WEIR_ASSERT(!shard.master.host.empty() && shard.master.port != 0);
    WEIR_ASSERT(!shard.slots.empty());
    for (const auto& range : shard.slots) {
      WEIR_ASSERT(range.first >= 0 && range.first <= range.last && range.last < weir::redis::kSlots);
    }
  }
}

void check_error(std::string_view text) {
  weir::redis::kind_of_error(text);
  WEIR_ASSERT(weir::redis::fit_for_log(text).size() <= weir::redis::kFaultTextMax + 3);
  if (const auto redirection = weir::redis::read_redirection(text, kAsked)) {
    WEIR_ASSERT(redirection->slot >= 0 && redirection->slot < weir::redis::kSlots);
    WEIR_ASSERT(!redirection->to.host.empty() && redirection->to.port != 0);
  }
}

}  // namespace

void fuzz(std::string_view text) {
  if (text.empty()) return;
  const bool is_tls = take_byte(text) % 2 == 1;
  compare_readings(text);
  check_error(text);
  const auto reply = weir::resp::ReplyParser().parse(text);
  if (reply.status == Status::done) {
    check_map(weir::redis::read_shards(reply.value, kAsked, is_tls));
    check_map(weir::redis::read_slots(reply.value, kAsked));
    if (const auto master = weir::redis::read_master_address(reply.value)) WEIR_ASSERT(master->port != 0);
  }
  if (const auto master = weir::redis::read_switch(text, "main")) WEIR_ASSERT(!master->host.empty());
  if (const auto master = weir::redis::read_promotion(text, "main")) WEIR_ASSERT(!master->host.empty());
  WEIR_ASSERT(weir::redis::slot_of(text) < weir::redis::kSlots);
}
