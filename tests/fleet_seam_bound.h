// The bound of what the nodes of a random history may admit, and whether they have admitted more.
//
// Base of the worlds of fleet_seam_random_test.cc and fleet_seam_cluster_test.cc. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fleet_node.h"
#include "seed.h"

namespace weir::test {

// For each key: what is used by the last answer of Redis, and the most that this node may have admitted while other
// nodes could not know of it. The node may know more than the test does, never less.
template <std::size_t kKeys>
struct Knowledge {
  std::array<std::optional<std::int64_t>, kKeys> heard{};
  std::array<std::int64_t, kKeys> alone{};
};

// `SeamNode` is a Knowledge and has a Node.
template <class SeamNode, std::size_t kKeys>
class SeamBound {
 public:
  virtual std::string text() const = 0;

 protected:
  SeamBound(Limit limit, std::uint64_t seed) : limit_(std::move(limit)), dice_(seed) {}
  ~SeamBound() = default;

  std::int64_t draw(std::int64_t below) {
    return static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(below));
  }
  std::int64_t bound(std::size_t key) const {
    std::int64_t all = limit_.capacity + once_more_[key];
    for (const auto& node : nodes_) all += node->alone[key];
    return all;
  }
  std::string broken_bound() const {
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (net_[key] > bound(key)) return last_ + ": key " + std::to_string(key) + ": " + text();
    }
    return {};
  }
  // For each key, what was admitted and its bound; and how many keys were evicted.
  std::string sums() const {
    std::string out;
    for (std::size_t key = 0; key < kKeys; ++key) {
      out += ", key " + std::to_string(key) + ": " + std::to_string(net_[key]) + " of " + std::to_string(bound(key));
      if (may_lack_[key]) out += " and may lack some";
    }
    std::uint64_t evicted = 0;
    for (const auto& node : nodes_) evicted += node->node->limiter->stats().evicted;
    return out + ", " + std::to_string(evicted) + " keys evicted";
  }
  // Redis has the charges of this key that it must have; what it does not have was admitted beyond the limit.
  std::string note_used(std::size_t key, std::int64_t used) {
    if (!may_lack_[key] && used < std::min(net_[key], limit_.capacity)) {
      return "key " + std::to_string(key) + ": Redis has " + std::to_string(used) + " charges: " + text();
    }
    once_more_[key] = std::max<std::int64_t>(0, net_[key] - used);
    return {};
  }

  const Limit limit_;
  std::mt19937_64 dice_;
  std::vector<std::unique_ptr<SeamNode>> nodes_;
  std::array<std::int64_t, kKeys> net_{}, once_more_{};
  std::array<bool, kKeys> may_lack_{};  // Redis may lack charges: after a refund, or by a lower version of the limit
  std::uint64_t next_id_ = 0;
  Tally tally_;
  std::string last_;
};

}  // namespace weir::test
