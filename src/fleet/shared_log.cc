// Reads the list in pages (shared_log.lua). See shared_log.h.
#include "fleet/shared_log.h"

#include <algorithm>

#include "base/text.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"

namespace weir::fleet {
namespace {

constexpr int kReadTries = 5;                             // how often a read restarts because the list was replaced
constexpr std::size_t kListMax = std::size_t{128} << 20;  // bytes of all lines; a longer list is not ours

constexpr std::size_t kPageHead = 3;  // values before the lines
constexpr std::size_t kTail = 32;

std::uint64_t score_of(const resp::Value& value) { return base::to_number<std::uint64_t>(value.text).value_or(0); }

std::string_view tail_of(std::string_view line) { return line.substr(line.size() - std::min(line.size(), kTail)); }

}  // namespace

void SharedLog::begin(ScriptPipeline& pipeline) {
  key_ = own_key(pipeline.options().prefix, "changes");
  script_ = pipeline.client().add_script(std::string(shared_log_script()));
}

Result<resp::Value> SharedLog::run(std::vector<std::string> arguments) {
  StoreCommand command{.words = {"1", key_}, .script = script_, .key = key_};
  for (std::string& argument : arguments) command.words.push_back(std::move(argument));
  return std::move(commands_.run(std::move(command), wake_).front().value);
}

Result<SharedLog::Page> SharedLog::page_behind(std::uint64_t number) {
  auto answer = run({"since", std::to_string(number)});
  if (!answer) return fail(std::move(answer.error()));
  const std::size_t size = answer->items.size();
  if (size < kPageHead) return fail(ErrorCode::unavailable, "Redis: invalid reply for the list of runtime changes");
  Page out{.last = score_of(answer->items[0]), .reached = score_of(answer->items[2])};
  out.tail = std::move(answer->items[1].text);
  for (std::size_t i = kPageHead; i < size; ++i) out.lines.push_back(std::move(answer->items[i].text));
  if (!out.lines.empty() && out.reached <= number) {
    return fail(ErrorCode::unavailable, "Redis: the numbers in the list of runtime changes do not increase");
  }
  return out;
}

// A page begins after the last line of the page before it. If that line is gone or different, the list is not the one
// whose beginning was read.
Result<std::optional<SharedLog::Lines>> SharedLog::all_behind(std::uint64_t number) {
  std::optional<Lines> out;
  std::size_t bytes = 0;
  for (;;) {
    auto page = page_behind(number);
    if (!page) return fail(std::move(page.error()));
    if (!out) {
      out.emplace(Lines{.tail = std::move(page->tail)});
    } else if (page->tail != tail_of(out->lines.back())) {
      return std::optional<Lines>();
    }
    out->last = page->last;
    number = page->reached;
    const bool is_whole = page->lines.empty() || number >= page->last;
    for (std::string& line : page->lines) {
      bytes += line.size();
      out->lines.push_back(std::move(line));
    }
    if (is_whole) return out;
    if (bytes > kListMax) {
      return fail(ErrorCode::out_of_range,
                  "Redis: the list of runtime changes is longer than 128 MiB, so Weir did not write it; "
                  "delete the key " +
                      key_ + ", and the servers write it again");
    }
  }
}

Result<SharedLog::Lines> SharedLog::since(std::uint64_t number) {
  for (int tries = 0; tries < kReadTries; ++tries) {
    auto lines = all_behind(number);
    if (!lines) return fail(std::move(lines.error()));
    if (*lines) return **std::move(lines);
  }
  return fail(ErrorCode::unavailable, "Redis: the list of runtime changes kept changing while it was read; try again");
}

Result<bool> SharedLog::append(std::uint64_t after, std::uint64_t number, const std::string& line) {
  if (line.size() > kLineMax) {
    return fail(ErrorCode::out_of_range, "a line of " + std::to_string(line.size()) +
                                             " bytes is too long for the list of runtime changes; the maximum is " +
                                             std::to_string(kLineMax) + " (7 MiB)");
  }
  auto answer = run({"append", std::to_string(after), std::to_string(number), line});
  if (!answer) return fail(std::move(answer.error()));
  return answer->integer == 1;
}

Result<void> SharedLog::drop(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> arguments = {"drop"};
  for (const std::uint64_t one : numbers) arguments.push_back(std::to_string(one));
  if (auto answer = run(std::move(arguments)); !answer) return fail(std::move(answer.error()));
  return {};
}

}  // namespace weir::fleet
