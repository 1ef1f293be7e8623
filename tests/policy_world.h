// Random policies and requests over a tiny alphabet, so that they match often: input for tests that compare the config
// reader and the matcher with plainer ones.
//
// The parser could have made each policy: patterns and ranges in canonical form, limits sorted by period, conditions in
// the order of the table. Dice make the choices, from a random seed or from the bytes of a fuzzer; when the bytes run
// out, they choose the simplest. Used by policy_text_test.cc, matcher_test.cc and fuzz/rule_matcher.cc. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"
#include "weir/request.h"

namespace weir::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  explicit Dice(std::span<const std::uint8_t> bytes) : bytes_(bytes), has_bytes_(true) {}

  // From 0 to sides - 1.
  std::size_t roll(std::size_t sides);
  // True once in `times`, on average.
  bool once_in(std::size_t times) { return roll(times) == times - 1; }
  bool is_spent() const { return has_bytes_ && bytes_.empty(); }

  template <class T>
  const T& pick(std::span<const T> all) {
    return all[roll(all.size())];
  }
  template <class List>
  const auto& pick(const List& all) {
    return *(std::begin(all) + static_cast<std::ptrdiff_t>(roll(std::size(all))));
  }

 private:
  std::mt19937_64 random_;
  std::span<const std::uint8_t> bytes_;
  bool has_bytes_ = false;
};

// API keys of clients, and their hashes for a config.
struct KnownKey {
  std::string_view clear;
  std::string_view hash;  // sha256sum
};
std::span<const KnownKey> known_keys();

// The time at which requests come: some rules have expired by then.
inline constexpr std::int64_t kWorldNow = 1'789'992'000'000'000;  // 2026-09-21T12:00:00Z

struct PolicySize {
  std::size_t rules_max = 8;
  std::size_t limits_max = 3;      // of a rule
  std::size_t special_one_in = 8;  // how many are unlimited, or required: of many rules one is enough
};
Policy random_policy(Dice& dice, PolicySize size = {});
// The `answers` of a policy as JSON, printed without code of our own printer.
std::string answers_json(const AnswerStyle& style);

// A request that owns the texts that its views refer to.
class OwnedRequest {
 public:
  weir::Request view() const;
  std::string text() const;  // for messages

  struct Pair {
    std::string name, value;
  };
  std::string user, api_key, ip, tenant, plan, method, host, path;
  std::vector<Pair> headers, entries;
  std::int64_t cost = 1;

 private:
  mutable std::vector<Attribute> header_views_, entry_views_;
};
OwnedRequest random_request(Dice& dice);

}  // namespace weir::test
