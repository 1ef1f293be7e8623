// The list is a sorted set: a line's score is its number. See shared_log.h.
#include "fleet/shared_log.h"

#include <charconv>

#include "fleet/own_key.h"

namespace weir {
namespace {

// KEYS: the set. ARGV: `since`, a number; `append`, the number of the last, the new one's, its line; `drop`, numbers.
// Answer: the last number, the end of the line with that number, then the lines; or 1 if it is done, else 0.
constexpr std::string_view kLogScript = R"lua(
local key = KEYS[1]
local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
local last = newest[2] or '0'
if ARGV[1] == 'since' then
  local answer = redis.call('ZRANGEBYSCORE', key, '(' .. ARGV[2], '+inf')
  local line = redis.call('ZRANGEBYSCORE', key, ARGV[2], ARGV[2])[1] or ''
  table.insert(answer, 1, string.sub(line, -32))
  table.insert(answer, 1, last)
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

Result<SharedLog::Lines> SharedLog::since(std::uint64_t number) {
  auto answer = run({"since", std::to_string(number)});
  if (!answer) return fail(std::move(answer.error()));
  Lines out;
  if (answer->items.size() < 2) return fail(ErrorCode::unavailable, "Redis: the list of changes is no list");
  const std::string& last = answer->items[0].text;
  std::from_chars(last.data(), last.data() + last.size(), out.last);
  out.tail = std::move(answer->items[1].text);
  for (std::size_t i = 2; i < answer->items.size(); ++i) out.lines.push_back(std::move(answer->items[i].text));
  return out;
}

Result<bool> SharedLog::append(std::uint64_t after, std::uint64_t number, const std::string& line) {
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
