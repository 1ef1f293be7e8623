// protobuf's JSON of the rate limit service, by Boost.JSON. See rls_json.h.
//
// Boost's own code is compiled in check_json.cc; here are only its declarations.
#include "protocol/rls_json.h"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "nearest.h"
#include "protocol/problem.h"

namespace weir {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 8> kUnits = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                                    "DAY",     "MONTH",  "YEAR",   "WEEK"};
constexpr std::array<std::string_view, 3> kCodes = {"UNKNOWN", "OK", "OVER_LIMIT"};

std::string_view text(const json::string& value) { return {value.data(), value.size()}; }
std::string_view text(json::string_view value) { return {value.data(), value.size()}; }

Result<void> wrong(std::string_view where, std::string_view wanted) {
  return fail(ErrorCode::invalid_argument, std::string(where) + " must be " + std::string(wanted));
}

// hits_addend of hitsAddend: the name as the .proto file has it.
std::string snake(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += '_';
    out += lower(c);
  }
  return out;
}

class Reader {
 public:
  Reader(std::size_t body_bytes, RlsJsonRequest& out) : out_(out) {
    out.texts.clear();
    out.texts.reserve(body_bytes);  // what the texts are decoded to is never longer, so that views of it stay good
    out.request.begin();
  }

  Result<void> read(const json::value& body) {
    auto done = members(body, "the request", [this](std::string_view name, const json::value& value) -> Result<bool> {
      if (name == "domain") return is_read(keep(value, "domain", out_.request.domain));
      if (name == "descriptors") {
        return is_read(each(value, "descriptors", [this](const json::value& one) { return descriptor(one); }));
      }
      if (name == "hits_addend") {
        std::uint64_t hits = 0;
        auto read = number(value, "hitsAddend", std::numeric_limits<std::uint32_t>::max(), hits);
        out_.request.hits_addend = static_cast<std::uint32_t>(hits);
        return is_read(read);
      }
      return false;
    });
    if (done) out_.request.end();
    return done;
  }

 private:
  static Result<bool> is_read(const Result<void>& done) {
    if (!done) return fail(done.error());
    return true;
  }

  // Every member by its name in the .proto file; `take` says whether it knows it.
  template <class Take>
  static Result<void> members(const json::value& value, std::string_view what, Take take) {
    if (!value.is_object()) return wrong(what, "an object");
    std::vector<std::string> seen;
    for (const json::key_value_pair& member : value.get_object()) {
      const std::string name = snake(text(member.key()));
      if (std::ranges::find(seen, name) != seen.end()) {
        return fail(ErrorCode::invalid_argument, "duplicate field " + in_quotes(text(member.key())));
      }
      seen.push_back(name);
      if (member.value().is_null()) continue;
      const Result<bool> known = take(name, member.value());
      if (!known) return fail(known.error());
      if (!*known) {
        return fail(ErrorCode::invalid_argument,
                    "unknown field " + in_quotes(text(member.key())) + " in " + std::string(what));
      }
    }
    return {};
  }

  template <class Take>
  static Result<void> each(const json::value& value, std::string_view what, Take take) {
    if (!value.is_array()) return wrong(what, "an array");
    for (const json::value& one : value.get_array()) {
      if (auto done = take(one); !done) return done;
    }
    return {};
  }

  Result<void> descriptor(const json::value& value) {
    if (out_.request.descriptors.size() == kRlsDescriptorsMax) return fail(too_many_descriptors());
    RlsDescriptor& own = out_.request.add_descriptor();
    return members(value, "a descriptor", [&](std::string_view name, const json::value& member) -> Result<bool> {
      if (name == "entries") {
        return is_read(each(member, "entries", [this](const json::value& one) { return entry(one); }));
      }
      if (name == "limit") return is_read(limit(member, own.limit.emplace()));
      if (name == "hits_addend") {
        return is_read(
            number(member, "hitsAddend", std::numeric_limits<std::uint64_t>::max(), own.hits_addend.emplace()));
      }
      if (name != "is_negative_hits") return false;
      if (!member.is_bool()) return is_read(wrong("isNegativeHits", "true or false"));
      own.is_negative_hits = member.get_bool();
      return true;
    });
  }

  Result<void> entry(const json::value& value) {
    if (out_.request.descriptors.back().count == kRlsEntriesMax) return fail(too_many_entries());
    Attribute pair;
    auto done = members(value, "an entry", [&](std::string_view name, const json::value& member) -> Result<bool> {
      if (name == "key") return is_read(keep(member, "key", pair.name));
      if (name == "value") return is_read(keep(member, "value", pair.value));
      return false;
    });
    if (done) out_.request.add_entry(pair);
    return done;
  }

  static Result<void> limit(const json::value& value, RlsOverride& own) {
    return members(value, "a limit", [&](std::string_view name, const json::value& member) -> Result<bool> {
      if (name == "unit") return is_read(unit(member, own.unit));
      if (name != "requests_per_unit") return false;
      std::uint64_t requests = 0;
      auto read = number(member, "requestsPerUnit", std::numeric_limits<std::uint32_t>::max(), requests);
      own.requests_per_unit = static_cast<std::uint32_t>(requests);
      return is_read(read);
    });
  }

  static Result<void> unit(const json::value& value, RlsUnit& out) {
    if (value.is_string()) {
      const auto* known = std::ranges::find(kUnits, text(value.get_string()));
      if (known == kUnits.end()) return wrong("unit", "one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR");
      out = static_cast<RlsUnit>(known - kUnits.begin());
      return {};
    }
    std::uint64_t given = 0;
    if (auto read = number(value, "unit", std::numeric_limits<std::uint32_t>::max(), given); !read) return read;
    out = given < kUnits.size() ? static_cast<RlsUnit>(given) : RlsUnit::unknown;
    return {};
  }

  // 3, "3", 3.0 and 3e0 are the same number.
  static Result<void> number(const json::value& value, std::string_view where, std::uint64_t most, std::uint64_t& out) {
    std::optional<std::uint64_t> given;
    if (value.is_int64() && value.get_int64() >= 0) given = static_cast<std::uint64_t>(value.get_int64());
    if (value.is_uint64()) given = value.get_uint64();
    if (value.is_double()) given = whole(value.get_double());
    if (value.is_string()) given = digits(text(value.get_string()));
    if (!given || *given > most) return wrong(where, "a whole number from 0 to " + std::to_string(most));
    out = *given;
    return {};
  }
  static std::optional<std::uint64_t> whole(double value) {
    constexpr double kExactMax = 9'007'199'254'740'992.0;
    if (!(value >= 0 && value <= kExactMax)) return std::nullopt;
    const auto cut = static_cast<std::uint64_t>(value);
    return static_cast<double>(cut) < value ? std::nullopt : std::optional(cut);
  }
  static std::optional<std::uint64_t> digits(std::string_view value) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
    return number;
  }

  Result<void> keep(const json::value& value, std::string_view where, std::string_view& out) {
    if (!value.is_string()) return wrong(where, "a text");
    const std::size_t begin = out_.texts.size();
    out_.texts.append(text(value.get_string()));
    out = std::string_view(out_.texts).substr(begin);
    return {};
  }

  RlsJsonRequest& out_;
};

// Members of an object, with the commas between them.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members() { out_ += '}'; }

  std::string& add(std::string_view name) {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    out_.append("\"").append(name).append("\":");
    return out_;
  }
  void add_text(std::string_view name, std::string_view value) {
    if (!value.empty()) append_json_text(add(name), value);
  }
  void add_number(std::string_view name, std::uint64_t value) {
    if (value != 0) add(name).append(std::to_string(value));
  }
  void add_name(std::string_view name, std::string_view value) { add(name).append("\"").append(value).append("\""); }

 private:
  std::string& out_;
  bool is_first_ = true;
};

template <class List, class Write>
void append_list(std::string& out, const List& list, Write write) {
  out += '[';
  bool is_first = true;
  for (const auto& one : list) {
    if (!std::exchange(is_first, false)) out += ',';
    write(one);
  }
  out += ']';
}

void append_status(std::string& out, const RlsStatus& status) {
  Members members(out);
  members.add_name("code", kCodes[static_cast<std::size_t>(status.code)]);
  if (status.current_limit) {
    Members limit(members.add("currentLimit"));
    limit.add_number("requestsPerUnit", status.current_limit->requests_per_unit);
    if (status.current_limit->unit != RlsUnit::unknown) {
      limit.add_name("unit", kUnits[static_cast<std::size_t>(status.current_limit->unit)]);
    }
    limit.add_text("name", status.current_limit->name);
  }
  members.add_number("limitRemaining", status.limit_remaining);
  if (status.seconds_until_reset) {
    members.add_name("durationUntilReset", std::to_string(*status.seconds_until_reset) + "s");
  }
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= part.size() ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

void append_metadata(std::string& out, const RlsMetadata& metadata) {
  Members members(out);
  append_json_text(members.add("rule"), metadata.rule);
  members.add("allowed").append(metadata.allowed ? "true" : "false");
  members.add("remaining").append(std::to_string(metadata.remaining));
  if (metadata.retry_after) members.add("retry_after").append(std::to_string(*metadata.retry_after));
}

}  // namespace

Result<void> read_rls_json(std::string_view body, RlsJsonRequest& out) try {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 16;
  const json::value parsed = json::parse(json::string_view(body.data(), body.size()), error, {}, options);
  if (error) return fail(ErrorCode::invalid_argument, "this is no JSON: " + error.message());
  return Reader(body.size(), out).read(parsed);
} catch (const std::exception&) {
  return fail(ErrorCode::exhausted, "out of memory");
}

void append_rls_json(const RlsResponse& response, std::string& out) {
  Members members(out);
  members.add_name("overallCode", kCodes[static_cast<std::size_t>(response.overall_code)]);
  if (!response.statuses.empty()) {
    append_list(members.add("statuses"), response.statuses,
                [&](const RlsStatus& status) { append_status(out, status); });
  }
  if (!response.response_headers.empty()) {
    append_list(members.add("responseHeadersToAdd"), response.response_headers, [&](const RlsHeader& header) {
      Members pair(out);
      pair.add_text("key", header.key);
      pair.add_text("value", header.value);
    });
  }
  if (!response.raw_body.empty()) members.add_name("rawBody", base64(response.raw_body));
  if (response.dynamic_metadata) append_metadata(members.add("dynamicMetadata"), *response.dynamic_metadata);
}

}  // namespace weir
