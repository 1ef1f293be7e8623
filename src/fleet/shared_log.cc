// The list is a sorted set: a line's score is its number. See shared_log.h.
#include "fleet/shared_log.h"

#include <algorithm>
#include <charconv>

#include "fleet/own_key.h"

namespace weir {
namespace {

constexpr int kReadTries = 5;                             // how often a read restarts because the list was replaced
constexpr std::size_t kListMax = std::size_t{128} << 20;  // bytes of all lines; a longer list is not ours

// KEYS: the set. ARGV: `since`, a number; or `append`, the number of the newest line, the new line's number, and the
// line; or `drop`, numbers. Reply to `since`: the newest number, the end of the line with the given number, the
// number of the last line in this reply, and lines. They are at most a MiB, unless there is only one, and at most a
// thousand, so that other clients do not wait long. Reply to the others: 1 if it was done, else 0.
constexpr std::string_view kLogScript = R"lua(
local key = KEYS[1]
local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
local last = newest[2] or '0'
if ARGV[1] == 'since' then
  local line = redis.call('ZRANGEBYSCORE', key, ARGV[2], ARGV[2])[1] or ''
  local answer, bytes = {last, string.sub(line, -32), ARGV[2]}, 0
  while #answer < 1003 do
    local found = redis.call('ZRANGEBYSCORE', key, '(' .. answer[3], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not found[1] then break end
    bytes = bytes + #found[1]
    if bytes > 1048576 and #answer > 3 then break end
    answer[3] = found[2]
    answer[#answer + 1] = found[1]
  end
  return answer
end
if ARGV[1] == 'drop' then
  for i = 2, #ARGV do redis.call('ZREMRANGEBYSCORE', key, ARGV[i], ARGV[i]) end
  return 1
end
if tonumber(last) ~= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', key, ARGV[3], ARGV[4])
return 1
)lua";

constexpr std::size_t kPageHead = 3;  // values before the lines
constexpr std::size_t kTail = 32;

std::uint64_t score_of(const resp::Value& value) {
  std::uint64_t number = 0;
  std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  return number;
}

std::string_view tail_of(std::string_view line) { return line.substr(line.size() - std::min(line.size(), kTail)); }

}  // namespace

void SharedLog::begin(Lane& lane) {
  key_ = own_key(lane.options().prefix, "changes");
  script_ = lane.client().add_script(std::string(kLogScript));
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

}  // namespace weir
