// The `answers` of a config: how listeners word decisions to clients. See fields.h. Settings that a client or a proxy
// would misunderstand are refused with the reason. Any thread may call it. Tested by tests/answers_text_test.cc.
#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "policy/fields.h"

namespace weir::policy {
namespace {

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
  std::string message = "`headers`: unknown form " + base::in_quotes(word);
  const std::string_view meant = base::nearest(word, kHeaders);
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
  if (is_sent) reader.wrong(node.at, "`headers` names " + base::in_quotes(*word) + " twice");
  is_sent = true;
}

void read_headers(Reader& reader, const Node& node, AnswerStyle& out) {
  out.x_ratelimit = out.retry_after = false;
  out.rate_limit = RateLimitFields::none;
  reader.each(node, kHeaders.size(), Empty::allowed, [&](const Node& one) { read_header(reader, one, out); });
}

std::optional<Node> write_headers(const AnswerStyle& style) {
  constexpr AnswerStyle kUsual{};
  if (style.x_ratelimit == kUsual.x_ratelimit && style.rate_limit == kUsual.rate_limit &&
      style.retry_after == kUsual.retry_after) {
    return {};
  }
  std::vector<std::string> words;
  if (style.x_ratelimit) words.emplace_back(kXRateLimit);
  if (style.rate_limit != RateLimitFields::none) words.emplace_back(word_of(style.rate_limit));
  if (style.retry_after) words.emplace_back(kRetryAfter);
  return list_node(words);
}

void read_deny_status(Reader& reader, const Node& node, AnswerStyle& out) {
  constexpr std::string_view kWanted = "a status from 400 to 499 (proxies take 5xx for a failure, and 2xx for a pass)";
  out.deny_status = static_cast<int>(reader.whole(node, 400, 499, kWanted).value_or(out.deny_status));
}

constexpr std::string_view kShownWords[] = {"binding", "all"};
constexpr Words kShown{kShownWords, "binding, which names the limit that denies, or all"};

constexpr Field<AnswerStyle> kAnswerFields[] = {
    {"headers", read_headers, write_headers},
    {"deny_status", read_deny_status, write_member<AnswerStyle, &AnswerStyle::deny_status>},
    {"hold_max",
     [](Reader& r, const Node& n, AnswerStyle& s) {
       r.span(n, "a duration from 0s (never delay) to 60s", Micros{0}, Micros{60'000'000}, s.hold_max);
     },
     write_member<AnswerStyle, &AnswerStyle::hold_max>},
    {"limits", read_word<AnswerStyle, &AnswerStyle::limits, kShown>,
     write_word<AnswerStyle, &AnswerStyle::limits, kShown>},
};

}  // namespace

std::span<const Field<AnswerStyle>> answer_fields() { return kAnswerFields; }

void read_answers(Reader& reader, const Node& node, AnswerStyle& out) {
  reader.fields(node, answer_fields(), "a map such as {headers: [x-ratelimit, retry-after], deny_status: 403}", out);
}

}  // namespace weir::policy
