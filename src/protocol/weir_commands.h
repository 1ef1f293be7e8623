// WEIR.CHECK, WEIR.LIMIT and WEIR.RESET: parses their arguments, and writes the common reply of the first two.
//
//   WEIR.CHECK field value … [ID x] [PEEK]                               by the rules
//   WEIR.LIMIT key limit [COST n] [ALGORITHM a] [ID x] [PEEK]            by a limit of its own
//   WEIR.RESET key                                                       resets such a limit
//   WEIR.RESET rule field value …                                        resets a rule
//
// A field is user, api_key, ip, tenant, plan, method, host, path, cost, header:NAME or entry:NAME. Case does not
// matter, and only header: and entry: fields may repeat. An unknown field is an error: if a misspelt one were
// ignored, the limit would not be what the caller meant. The reply is a map (in RESP2 a flat array). Times are
// integers in milliseconds, rounded up; -1 means never. In a fleet, the last member says how the decision was made.
// Pure; any thread may call it. Tested by weir_commands_test.cc.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "resp/writer.h"
#include "weir/answer.h"
#include "weir/quota.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::protocol {

struct FieldCheck {
  Request request{};  // views of the words and of the next two members
  std::vector<Attribute> headers{};
  std::vector<Attribute> entries{};
  std::optional<std::string_view> id{};
  bool is_peek = false;
};

// `words` does not include the command's name, nor the rule's name of WEIR.RESET.
Result<FieldCheck> parse_fields(std::span<const std::string_view> words);

struct LimitCheck {
  std::string_view key;
  std::string_view quota;
  std::optional<Algorithm> algorithm{};
  std::int64_t cost = 1;
  std::optional<std::string_view> id{};
  bool is_peek = false;
};

Result<LimitCheck> parse_limit_check(std::span<const std::string_view> words);

void write_answer(const Answer& answer, resp::Writer& out);
void write_decision(const Decision& decision, resp::Writer& out);
// Writes a reply without a decision, when the server was too overloaded to make one.
void write_overload(bool allowed, Micros retry_after, resp::Writer& out);

}  // namespace weir::protocol
