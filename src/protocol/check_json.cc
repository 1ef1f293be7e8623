// Reads the JSON of a check. See check_json.h.
//
// The one file of the protocol layer that sees Boost, and the one that compiles Boost.JSON, header-only.
#include "protocol/check_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "nearest.h"
#include "protocol/request_cost.h"
#include "weir/verdict.h"

namespace weir {
namespace {

using boost::json::error_code;
using JsonText = boost::json::string_view;

constexpr std::string_view kExample = R"({"key":"user:42","limit":"100/minute"})";
enum Member : std::size_t {
  kKey,
  kLimit,
  kAlgorithm,
  kCost,
  kUser,
  kApiKey,
  kIp,
  kTenant,
  kPlan,
  kMethod,
  kHost,
  kPath,
  kHeaders,
  kEntries,
  kMembers
};
constexpr std::array<std::string_view, kMembers> kNames = {"key",     "limit", "algorithm", "cost",   "user",
                                                           "api_key", "ip",    "tenant",    "plan",   "method",
                                                           "host",    "path",  "headers",   "entries"};
constexpr std::array<std::string_view, kMembers> kWanted = {"a text such as \"user:42\"",
                                                            "a text such as \"100/minute\"",
                                                            "a text such as \"token_bucket\"",
                                                            "a whole number such as 1",
                                                            "a text such as \"42\"",
                                                            "a text",
                                                            "a text such as \"192.0.2.1\"",
                                                            "a text such as \"acme\"",
                                                            "a text such as \"free\"",
                                                            "a text such as \"GET\"",
                                                            "a text such as \"api.example.com\"",
                                                            "a text such as \"/api/search\"",
                                                            "an object of texts such as {\"x-org\":\"acme\"}",
                                                            "an object of texts such as {\"remote\":\"acme\"}"};

std::string_view plain(JsonText text) { return {text.data(), text.size()}; }

std::string in_double_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

// Collects the members of the one object; stops at the first thing that is wrong.
class Collector {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  std::optional<Error> error;
  std::array<std::optional<std::string>, kMembers> texts;  // those that are no texts stay empty
  std::optional<std::int64_t> cost;
  RuleCheck::Pairs headers, entries;

  bool has(Member member) const { return seen_[member]; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& ec) {
    if (!inside_) return inside_ = true;
    if (nested_ || (member_ != kHeaders && member_ != kEntries)) return wrong_type("an object", ec);
    return nested_ = true;
  }
  bool on_object_end(std::size_t, error_code&) {
    nested_ = false;
    return true;
  }
  bool on_array_begin(error_code& ec) { return wrong_type("an array", ec); }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_key_part(JsonText part, std::size_t, error_code&) { return append(part); }
  bool on_key(JsonText part, std::size_t, error_code& ec) {
    append(part);
    std::string name = std::exchange(pending_, {});
    return nested_ ? begin_attribute(std::move(name), ec) : begin_member(std::move(name), ec);
  }
  bool on_string_part(JsonText part, std::size_t, error_code&) { return append(part); }
  bool on_string(JsonText part, std::size_t, error_code& ec) {
    append(part);
    std::string text = std::exchange(pending_, {});
    if (nested_) {
      attributes().back().second = std::move(text);
      return true;
    }
    if (!inside_ || member_ == kCost || member_ >= kHeaders) return wrong_type("the text " + in_quotes(text), ec);
    texts[member_] = std::move(text);
    return true;
  }
  bool on_number_part(JsonText, error_code&) { return true; }
  bool on_int64(std::int64_t value, JsonText text, error_code& ec) {
    if (!inside_ || member_ != kCost) return wrong_type("the number " + shown(text), ec);
    cost = value;
    return true;
  }
  bool on_uint64(std::uint64_t, JsonText text, error_code& ec) { return huge_number(text, ec); }
  bool on_double(double, JsonText text, error_code& ec) {
    if (plain(text).find_first_of(".eE") == std::string_view::npos) return huge_number(text, ec);
    return wrong_type("the number " + shown(text), ec);
  }
  bool on_bool(bool value, error_code& ec) { return wrong_type(value ? "true" : "false", ec); }
  bool on_null(error_code& ec) { return wrong_type("null", ec); }
  bool on_comment_part(JsonText, error_code&) { return true; }
  bool on_comment(JsonText, error_code&) { return true; }

 private:
  static std::string shown(JsonText number) { return std::string(plain(number).substr(0, 40)); }

  bool append(JsonText part) {
    pending_.append(part.data(), part.size());
    return true;
  }

  bool refuse(ErrorCode code, std::string message, error_code& ec) {
    error = Error{code, std::move(message), 0};
    ec = boost::json::error::exception;  // only to stop the parser; `error` says why
    return false;
  }

  bool wrong_type(std::string_view found, error_code& ec) {
    std::string message;
    if (inside_) {
      message = in_double_quotes(kNames[member_]).append(" must be ").append(kWanted[member_]);
    } else {
      message.append("the body must be an object such as ").append(kExample);
    }
    return refuse(ErrorCode::invalid_argument, message.append(", found ").append(found), ec);
  }

  bool huge_number(JsonText text, error_code& ec) {
    if (!inside_ || member_ != kCost) return wrong_type("the number " + shown(text), ec);
    return refuse(ErrorCode::out_of_range,
                  "\"cost\" is " + shown(text) + ", beyond 2^53 (9007199254740992) in either direction", ec);
  }

  RuleCheck::Pairs& attributes() { return member_ == kHeaders ? headers : entries; }

  bool begin_attribute(std::string name, error_code& ec) {
    attributes().push_back({std::move(name), {}});
    if (attributes().size() <= kJsonAttributesMax) return true;
    return refuse(
        ErrorCode::out_of_range,
        in_double_quotes(kNames[member_]) + " has more than " + std::to_string(kJsonAttributesMax) + " members", ec);
  }

  bool begin_member(std::string name, error_code& ec) {
    for (member_ = 0; member_ < kMembers && kNames[member_] != name; ++member_) {
    }
    if (member_ < kMembers) {
      const bool seen = std::exchange(seen_[member_], true);
      return !seen || refuse(ErrorCode::invalid_argument, in_double_quotes(name) + " is given twice; give it once", ec);
    }
    std::string message = "unknown member " + in_quotes(name) + "; ";
    const std::string_view meant = nearest(name, kNames);
    if (meant.empty()) {
      message += "known are";
      for (const std::string_view known : kNames) message.append(" ").append(in_double_quotes(known));
    } else {
      message.append("did you mean ").append(in_double_quotes(meant)).append("?");
    }
    return refuse(ErrorCode::invalid_argument, std::move(message), ec);
  }

  bool inside_ = false;
  bool nested_ = false;  // in the object of headers or of entries
  std::size_t member_ = 0;
  std::array<bool, kMembers> seen_{};
  std::string pending_;  // a text that comes in several parts
};

tl::unexpected<Error> missing(Member member) {
  return fail(
      ErrorCode::invalid_argument,
      in_double_quotes(kNames[member]).append(" is missing; the body must be an object such as ").append(kExample));
}

tl::unexpected<Error> about(Member member, Error error) {
  error.message.insert(0, in_double_quotes(kNames[member]) + ": ");
  return fail(std::move(error));
}

std::optional<Error> read(std::string_view body, Collector& collector_out) {
  boost::json::basic_parser<Collector> parser(boost::json::parse_options{});
  error_code ec;
  const std::size_t read = parser.write_some(false, body.data(), body.size(), ec);
  collector_out = std::move(parser.handler());
  if (collector_out.error) return collector_out.error;
  if (ec) {
    return Error{ErrorCode::invalid_argument, "the body is not JSON: " + ec.message() + " at byte " +
                                                  std::to_string(read + 1) + "; send an object such as " +
                                                  std::string(kExample)};
  }
  if (read < body.size()) {
    return Error{ErrorCode::invalid_argument,
                 "after the object there is more, from byte " + std::to_string(read + 1) + " on; send one object"};
  }
  return std::nullopt;
}

}  // namespace

namespace {

Result<CheckRequest> charge_of(Collector& given, std::int64_t cost) {
  if (!given.texts[kKey]) return missing(kKey);
  if (!given.texts[kLimit]) return missing(kLimit);
  if (auto error = refuse_key(*given.texts[kKey])) return about(kKey, std::move(*error));
  std::optional<Algorithm> algorithm;
  if (given.texts[kAlgorithm]) {
    auto parsed = parse_algorithm(*given.texts[kAlgorithm]);
    if (!parsed) return about(kAlgorithm, std::move(parsed.error()));
    algorithm = *parsed;
  }
  auto quota = parse_quota(*given.texts[kLimit], algorithm);
  if (!quota) return about(kLimit, std::move(quota.error()));
  if (quota->algorithm == Algorithm::concurrency) {
    return fail(ErrorCode::invalid_argument,
                "\"limit\": permits in flight are acquired and released, which a check cannot do; "
                "give a rate such as \"100/minute\"");
  }
  return CheckRequest{std::move(*given.texts[kKey]), std::move(*given.texts[kLimit]), std::move(*quota), cost};
}

RuleCheck rules_of(Collector& given, std::int64_t cost) {
  const auto text = [&](Member member) { return std::move(given.texts[member]).value_or(std::string()); };
  return {.user = text(kUser),
          .api_key = text(kApiKey),
          .ip = text(kIp),
          .tenant = text(kTenant),
          .plan = text(kPlan),
          .method = text(kMethod),
          .host = text(kHost),
          .path = text(kPath),
          .headers = std::move(given.headers),
          .entries = std::move(given.entries),
          .cost = cost};
}

// The first member that only the rules look at.
std::optional<Member> rule_member(const Collector& given) {
  for (std::size_t member = kUser; member < kMembers; ++member) {
    if (given.has(static_cast<Member>(member))) return static_cast<Member>(member);
  }
  return {};
}

}  // namespace

Request RuleCheck::request(std::vector<Attribute>& attributes) const {
  attributes.clear();
  attributes.reserve(headers.size() + entries.size());
  for (const auto& [name, value] : headers) attributes.push_back({name, value});
  for (const auto& [name, value] : entries) attributes.push_back({name, value});
  const std::span<const Attribute> all(attributes);
  return {.user = user,
          .api_key = api_key,
          .ip = ip,
          .tenant = tenant,
          .plan = plan,
          .method = method,
          .host = host,
          .path = path,
          .headers = all.first(headers.size()),
          .entries = all.subspan(headers.size()),
          .cost = cost};
}

Result<CheckBody> parse_check(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the body is empty; send an object such as " + std::string(kExample));
  }
  Collector given;
  if (auto error = read(body, given)) return fail(std::move(*error));
  const std::int64_t cost = given.cost.value_or(1);
  if (auto error = refuse_cost(cost)) return about(kCost, std::move(*error));
  const auto by_rules = rule_member(given);
  const bool has_own = given.has(kKey) || given.has(kLimit) || given.has(kAlgorithm);
  if (by_rules && has_own) {
    return fail(ErrorCode::invalid_argument,
                in_double_quotes(kNames[*by_rules]) +
                    " is for the rules, \"key\" and \"limit\" do without them; give one or the other");
  }
  if (by_rules) return CheckBody{.by_rules = rules_of(given, cost)};
  auto charge = charge_of(given, cost);
  if (!charge) return fail(std::move(charge.error()));
  return CheckBody{.charge = *std::move(charge)};
}

}  // namespace weir
