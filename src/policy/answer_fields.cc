// The `answers` of a config: how listeners word decisions to clients. See fields.h. Settings that a client or a proxy
// would misunderstand are refused with the reason. Any thread may call it. Tested by tests/answers_text_test.cc.
#include <algorithm>
#include <array>
#include <charconv>

#include "algorithm/quota_words.h"
#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/flow.h"
#include "weir/duration.h"

namespace weir {
namespace {

constexpr Micros kHoldMax{60'000'000};
constexpr std::string_view kXRateLimit = "x-ratelimit", kRetryAfter = "retry-after";
// in the order of RateLimitFields, from draft_03
constexpr std::array<std::string_view, 4> kDrafts = {"draft-03", "draft-06", "draft-07", "draft-11"};
constexpr std::array<std::string_view, 6> kHeaders = {kXRateLimit, kDrafts[0], kDrafts[1],
                                                      kDrafts[2],  kDrafts[3], kRetryAfter};

std::string_view word_of(RateLimitFields fields) { return kDrafts[static_cast<std::size_t>(fields) - 1]; }

void read_draft(Reader& reader, const Node& node, std::size_t draft, AnswerStyle& out) {
  if (out.rate_limit != RateLimitFields::none) {
    return reader.wrong(node.at, "`headers`: send only one draft of RateLimit, " +
                                     std::string(word_of(out.rate_limit)) + " or " + std::string(kDrafts[draft]));
  }
  out.rate_limit = static_cast<RateLimitFields>(draft + 1);
}

void refuse_header(Reader& reader, const Node& node, std::string_view word) {
  std::string message = "`headers`: unknown form " + in_quotes(word);
  const std::string_view meant = nearest(word, kHeaders);
  if (!meant.empty()) {
    message += ", did you mean " + std::string(meant) + '?';
  } else {
    message += "; known are x-ratelimit, draft-03, draft-06, draft-07, draft-11 and retry-after; [] sends none";
  }
  reader.wrong(node.at, std::move(message));
}

void read_header(Reader& reader, const Node& node, AnswerStyle& out) {
  const auto word = reader.text(node, "a list of header forms such as [x-ratelimit, draft-11, retry-after], or []");
  if (!word) return;
  const auto draft = std::ranges::find(kDrafts, *word);
  if (draft != kDrafts.end()) return read_draft(reader, node, static_cast<std::size_t>(draft - kDrafts.begin()), out);
  if (*word != kXRateLimit && *word != kRetryAfter) return refuse_header(reader, node, *word);
  bool& is_sent = *word == kXRateLimit ? out.x_ratelimit : out.retry_after;
  if (is_sent) reader.wrong(node.at, "`headers` names " + in_quotes(*word) + " twice");
  is_sent = true;
}

void read_headers(Reader& reader, const Node& node, AnswerStyle& out) {
  out.x_ratelimit = out.retry_after = false;
  out.rate_limit = RateLimitFields::none;
  reader.each(node, kHeaders.size(), Empty::allowed, [&](const Node& one) { read_header(reader, one, out); });
}

std::string print_headers(const AnswerStyle& style) {
  constexpr AnswerStyle kUsual{};
  if (style.x_ratelimit == kUsual.x_ratelimit && style.rate_limit == kUsual.rate_limit &&
      style.retry_after == kUsual.retry_after) {
    return {};
  }
  std::vector<std::string> words;
  if (style.x_ratelimit) words.emplace_back(kXRateLimit);
  if (style.rate_limit != RateLimitFields::none) words.emplace_back(word_of(style.rate_limit));
  if (style.retry_after) words.emplace_back(kRetryAfter);
  return flow_list(words);
}

void read_deny_status(Reader& reader, const Node& node, AnswerStyle& out) {
  int status = 0;
  const std::string& digits = node.text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), status);
  const bool is_whole = node.is_scalar() && error == std::errc{} && end == digits.data() + digits.size();
  if (is_whole && status >= 400 && status <= 499) {
    out.deny_status = status;
  } else {
    reader.wrong_kind(node, "a status from 400 to 499 (proxies take 5xx for a failure, and 2xx for a pass)");
  }
}

void read_hold_max(Reader& reader, const Node& node, AnswerStyle& out) {
  constexpr std::string_view kWanted = "a duration from 0s (never delay) to 60s";
  const auto text = reader.text(node, kWanted);
  if (!text) return;
  const auto most = *text == "0s" || *text == "0" ? Result<Micros>(Micros{0}) : parse_duration(*text);
  if (!most || *most > kHoldMax) return reader.wrong_kind(node, kWanted);
  out.hold_max = *most;
}

std::string print_hold_max(const AnswerStyle& style) {
  if (style.hold_max == AnswerStyle{}.hold_max) return {};
  return style.hold_max == Micros{0} ? "0s" : duration_text(style.hold_max.count());
}

constexpr std::array<std::string_view, 2> kShown = {"binding", "all"};  // in the order of ShownLimits

void read_shown_limits(Reader& reader, const Node& node, AnswerStyle& out) {
  const auto* const word = node.is_scalar() ? std::ranges::find(kShown, node.text) : kShown.end();
  if (word == kShown.end()) return reader.wrong_kind(node, "binding, which names the limit that denies, or all");
  out.limits = static_cast<ShownLimits>(word - kShown.begin());
}

constexpr Field<AnswerStyle> kAnswerFields[] = {
    {"headers",
     R"({"anyOf":[{"$ref":"#/$defs/header_form"},{"type":"array","items":{"$ref":"#/$defs/header_form"},)"
     R"("uniqueItems":true}]})",
     {.about = "The headers that show a client its limits. At most one draft; `[]` sends none.",
      .type = "list of `x-ratelimit`, `draft-03`, `draft-06`, `draft-07`, `draft-11`, `retry-after`",
      .default_value = "[x-ratelimit, draft-11, retry-after]",
      .examples = "[draft-07, retry-after]\n[]"},
     read_headers,
     print_headers},
    {"deny_status",
     R"({"type":"integer","minimum":400,"maximum":499})",
     {.about = "The status of a forward-auth denial. nginx accepts only 401 and 403.",
      .type = "integer, 400 to 499",
      .default_value = "429",
      .examples = "403"},
     read_deny_status,
     [](const AnswerStyle& s) {
       return s.deny_status == AnswerStyle{}.deny_status ? std::string() : std::to_string(s.deny_status);
     }},
    {"hold_max",
     R"({"type":"string"})",
     {.about = "How long forward-auth may delay a response until a `leaky_bucket` admits the request. `0s`: never.",
      .type = "duration, 0s to 60s",
      .default_value = "5s",
      .examples = "2s"},
     read_hold_max,
     print_hold_max},
    {"limits",
     R"({"enum":["binding","all"]})",
     {.about = "The limits that headers and denials name. `binding`: the one that denies or is tightest. `all`: all "
               "that apply.",
      .type = "`binding` or `all`",
      .default_value = "binding",
      .examples = "all"},
     read_shown_limits,
     [](const AnswerStyle& s) {
       return s.limits == AnswerStyle{}.limits ? std::string()
                                               : std::string(kShown[static_cast<std::size_t>(s.limits)]);
     }},
};

}  // namespace

std::span<const Field<AnswerStyle>> answer_fields() { return kAnswerFields; }

void read_answers(Reader& reader, const Node& node, AnswerStyle& out) {
  reader.fields(node, answer_fields(), "a map such as {headers: [x-ratelimit, retry-after], deny_status: 403}", out);
}

std::string print_answers(const AnswerStyle& style) {
  return style == AnswerStyle{} ? "" : flow_map(print_fields(answer_fields(), style));
}

}  // namespace weir
