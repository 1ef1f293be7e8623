// The entries of COMMAND DOCS, as plain tables. See resp_call.h.
//
// Tested by resp_session_test.cc.
#include "server/resp/resp_call.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace weir::server::resp {
namespace {

enum : std::uint8_t { kOptional = 1, kMultiple = 2 };

struct Argument {
  std::string_view name;
  std::string_view type;
  std::string_view token;  // the word before the argument; empty: none
  std::uint8_t flags = 0;
  std::span<const Argument> inner{};  // the arguments in a block
};

struct Entry {
  std::string_view name;
  std::string_view summary;
  std::string_view complexity;
  std::span<const Argument> arguments;
};

constexpr Argument kThrottle[] = {{"key", "key", "", 0},
                                  {"max_burst", "integer", "", 0},
                                  {"count", "integer", "", 0},
                                  {"period", "integer", "", 0},
                                  {"quantity", "integer", "", kOptional}};
constexpr Argument kGcraArguments[] = {{"key", "key", "", 0},
                                       {"max-burst", "integer", "", 0},
                                       {"tokens-per-period", "integer", "", 0},
                                       {"period", "double", "", 0},
                                       {"count", "integer", "TOKENS", kOptional}};
constexpr Argument kPair[] = {{"field", "string", "", 0}, {"value", "string", "", 0}};
constexpr Argument kCheck[] = {{"pair", "block", "", kMultiple, kPair},
                               {"id", "string", "ID", kOptional},
                               {"peek", "pure-token", "PEEK", kOptional}};
constexpr Argument kLimit[] = {{"key", "key", "", 0},
                               {"limit", "string", "", 0},
                               {"cost", "integer", "COST", kOptional},
                               {"algorithm", "string", "ALGORITHM", kOptional},
                               {"id", "string", "ID", kOptional},
                               {"peek", "pure-token", "PEEK", kOptional}};
constexpr Argument kResetArguments[] = {{"key-or-rule", "string", "", 0},
                                        {"pair", "block", "", kOptional | kMultiple, kPair}};
constexpr Argument kDel[] = {{"key", "key", "", kMultiple}};

constexpr Entry kEntries[] = {
    {"cl.throttle", "Charges a token bucket with capacity max_burst + 1, as redis-cell does.", "O(1)", kThrottle},
    {"del", "Resets keys: each has its full limit again.", "O(N) where N is the number of keys.", kDel},
    {"gcra", "Charges a token bucket with capacity max-burst + 1 and any period.", "O(1)", kGcraArguments},
    {"throttle", "Charges a token bucket with capacity max_burst, as throttlecrab does.", "O(1)", kThrottle},
    {"weir.check", "Checks a request against the rules, and charges it.",
     "O(N) where N is the number of limits that apply.", kCheck},
    {"weir.limit", "Checks a key against a limit such as 100/minute or '10/s burst 50', and charges it.", "O(1)",
     kLimit},
    {"weir.reset", "Resets a key, or a rule for the client with these fields.", "O(1)", kResetArguments},
};

void write_flags(std::uint8_t flags, weir::resp::Writer& out) {
  out.bulk("flags");
  out.array(((flags & kOptional) != 0 ? 1u : 0u) + ((flags & kMultiple) != 0 ? 1u : 0u));
  if ((flags & kOptional) != 0) out.simple("optional");
  if ((flags & kMultiple) != 0) out.simple("multiple");
}

void write_arguments(std::span<const Argument> arguments, weir::resp::Writer& out) {
  out.bulk("arguments");
  out.array(arguments.size());
  for (const Argument& argument : arguments) {
    const bool has_token = !argument.token.empty(), has_flags = argument.flags != 0, is_block = !argument.inner.empty();
    out.map(2u + (has_token ? 1u : 0u) + (has_flags ? 1u : 0u) + (is_block ? 1u : 0u));
    write_pair("name", argument.name, out);
    write_pair("type", argument.type, out);
    if (has_token) write_pair("token", argument.token, out);
    if (has_flags) write_flags(argument.flags, out);
    if (is_block) write_arguments(argument.inner, out);
  }
}

}  // namespace

std::string_view documented_command(std::size_t index) {
  return index < std::size(kEntries) ? kEntries[index].name : std::string_view();
}

bool write_docs(std::string_view name, std::string_view version, weir::resp::Writer& out) {
  const auto* const entry = std::ranges::find(kEntries, name, &Entry::name);
  if (entry == std::end(kEntries)) return false;
  out.bulk(entry->name);
  out.map(5);
  write_pair("summary", entry->summary, out);
  write_pair("since", version, out);
  write_pair("group", "rate_limit", out);
  write_pair("complexity", entry->complexity, out);
  write_arguments(entry->arguments, out);
  return true;
}

}  // namespace weir::server::resp
