// A list of numbered lines that all nodes of a fleet have together, in Redis.
//
//   while (!*log.append(last, last + 1, line)) last = take(log.since(last));     // somebody was faster
//
// Numbers rise, and whoever appends says after which: so no two lines are made of the same knowledge. Redis may lose
// the newest lines in a failover; who looks is shown the end of the last line that it had, and sees if it is another.
// It does not expire. A long list is read in pages, and anew if it has become another one in between. Calls wait for
// Redis, half a second at most, and of a long list so long for each page; any thread but the store's. Tested by
// tests/fleet_log_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/store_commands.h"
#include "weir/result.h"

namespace weir {

class SharedLog {
 public:
  SharedLog(StoreCommands& commands, std::function<void()> wake) : commands_(commands), wake_(std::move(wake)) {}

  // Before the store's thread is driven.
  void begin(Lane& lane);

  struct Lines {
    std::uint64_t last = 0;  // number of all; 0: there is no list
    std::string tail{};      // the last 32 bytes of the line with the number that was asked for; empty: there is none
    std::vector<std::string> lines{};
  };
  // Those behind this number.
  Result<Lines> since(std::uint64_t number);

  static constexpr std::size_t kLineMax = std::size_t{7} << 20;  // bytes; a reply may have one more MiB
  // False: the last one is not `after`, and nothing was done.
  Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line);
  Result<void> drop(const std::vector<std::uint64_t>& numbers);

 private:
  struct Page {
    std::uint64_t last = 0;     // of all
    std::uint64_t reached = 0;  // of this page
    std::string tail{};
    std::vector<std::string> lines{};
  };

  Result<resp::Value> run(std::vector<std::string> arguments);
  Result<Page> page_behind(std::uint64_t number);
  // Nothing: it became another list meanwhile.
  Result<std::optional<Lines>> all_behind(std::uint64_t number);

  StoreCommands& commands_;
  const std::function<void()> wake_;
  std::string key_;
  int script_ = redis::kNoScript;
};

}  // namespace weir
