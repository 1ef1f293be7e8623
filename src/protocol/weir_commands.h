// WEIR.CHECK, WEIR.LIMIT and WEIR.RESET: their words -> values, and the one shape of what the first two answer.
//
//   WEIR.CHECK field value … [ID x] [PEEK]                               by the rules
//   WEIR.LIMIT key quota [COST n] [ALGORITHM a] [ID x] [PEEK]            by a limit of its own
//   WEIR.RESET key                                                       of such a limit
//   WEIR.RESET rule field value …                                        of a rule
//
// A field is user, api_key, ip, tenant, plan, method, host, path, cost, header:NAME or entry:NAME; in any case, as all
// words of a command, but each once. An unknown one is an error: misspelt and ignored, it would be a limit that does
// not hold. The answer is a map (in RESP2 a flat array) of integers, times in milliseconds, rounded up; -1 is never. Of
// a fleet it also says, last, how it was made. Pure; any thread. Tested by weir_commands_test.cc.
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

namespace weir {

struct FieldCheck {
  Request request{};  // looks at the words, and at these two
  std::vector<Attribute> headers{};
  std::vector<Attribute> entries{};
  std::optional<std::string_view> id{};
  bool is_peek = false;
};

// `words` come without the command's name, and for WEIR.RESET without the rule's.
Result<FieldCheck> parse_fields(std::span<const std::string_view> words);

struct LimitCheck {
  std::string_view key;
  std::string_view quota;
  std::optional<Algorithm> algorithm{};
  std::int64_t cost = 1;
  std::optional<std::string_view> id{};
  bool is_peek = false;
};

// `words` are at least two.
Result<LimitCheck> parse_limit_check(std::span<const std::string_view> words);

void write_answer(const Answer& answer, resp::Writer& out);
void write_decision(const Decision& decision, resp::Writer& out);
// Instead of a decision, for which there was no time.
void write_overload(bool allowed, Micros retry_after, resp::Writer& out);

}  // namespace weir
