// A list of numbered lines in Redis that all nodes of a fleet share.
//
//   while (!*log.append(last, last + 1, line)) last = take(log.since(last));     // another node was faster
//
// Numbers rise, and append() names the last line that the caller knows. So no two lines follow the same line. Redis
// may lose the newest lines in a failover. since() returns the end of the reader's last line, so the reader notices
// if that line has changed. The list does not expire. A long list is read in pages, and from the start if it was
// replaced in between. A call waits for Redis at most half a second, or that long per page of a long list. Any thread
// but the store's. Tested by tests/fleet_log_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleet/store_commands.h"
#include "weir/result.h"

namespace weir::fleet {

class SharedLog {
 public:
  SharedLog(StoreCommands& commands, std::function<void()> wake) : commands_(commands), wake_(std::move(wake)) {}

  // Call this before the store's thread runs.
  void begin(ScriptPipeline& pipeline);

  struct Lines {
    std::uint64_t last = 0;  // number of the newest line; 0: there is no list
    std::string tail{};      // the last 32 bytes of the line with the requested number; empty: none
    std::vector<std::string> lines{};
  };
  // The lines after this number.
  Result<Lines> since(std::uint64_t number);

  static constexpr std::size_t kLineMax = std::size_t{7} << 20;  // bytes; a reply may have one more MiB
  // False: the newest line is not `after`, and nothing was written.
  Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line);
  Result<void> drop(const std::vector<std::uint64_t>& numbers);

 private:
  struct Page {
    std::uint64_t last = 0;     // of the whole list
    std::uint64_t reached = 0;  // of this page
    std::string tail{};
    std::vector<std::string> lines{};
  };

  Result<resp::Value> run(std::vector<std::string> arguments);
  Result<Page> page_behind(std::uint64_t number);
  // Empty: the list was replaced meanwhile.
  Result<std::optional<Lines>> all_behind(std::uint64_t number);

  StoreCommands& commands_;
  const std::function<void()> wake_;
  std::string key_;
  int script_ = redis::kNoScript;
};

}  // namespace weir::fleet
