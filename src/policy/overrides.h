// Compiled limits that override a subject's plan. Compiled on first use, then kept with the rulebook.
//
// Many subjects have the same overrides, so they are cached by their text. The cache is bounded. If it is full, or
// the text is not a list of quotas, the plan's limits apply instead. Any thread may call it. A lookup of cached
// limits waits only for a thread that is adding some. Tested by rulebook_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/text_map.h"
#include "policy/reader.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::policy {

struct BookLimit;

inline constexpr std::size_t kOverridesMax = 100'000;

// parse_limits()
//
// Parses comma-separated quotas, and sorts them from the shortest period to the longest: `10/second, 5000/hour`.
Result<std::vector<RuleLimit>> parse_limits(std::string_view text, std::optional<Algorithm> algorithm,
                                            const Reader::Compile& compile);

class Overrides {
 public:
  explicit Overrides(Reader::Compile compile);
  ~Overrides();
  Overrides(const Overrides&) = delete;
  Overrides& operator=(const Overrides&) = delete;

  // Returns the limits of the text for a rule; `number` is its number in the policy. Empty if there are none.
  std::span<const BookLimit> find(const Rule& rule, std::uint32_t number, std::string_view text);

 private:
  struct Set;
  using Sets = base::TextMap<std::unique_ptr<const Set>>;

  const Set* known(std::uint32_t number, std::string_view text) const REQUIRES_SHARED(mutex_);
  std::unique_ptr<const Set> make(const Rule& rule, std::uint32_t number, std::string_view text) const;

  const Reader::Compile compile_;
  mutable base::SharedMutex mutex_;
  std::map<std::uint32_t, Sets> sets_ GUARDED_BY(mutex_);
  std::size_t size_ GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::policy
