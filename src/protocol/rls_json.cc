// The rate limit service's messages in protobuf's JSON. See rls_json.h.
#include "protocol/rls_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/text.h"
#include "protocol/json_writer.h"

namespace weir::protocol {
namespace {

constexpr std::array<std::string_view, 8> kUnits = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                                    "DAY",     "MONTH",  "YEAR",   "WEEK"};
constexpr std::array<std::string_view, 3> kCodes = {"UNKNOWN", "OK", "OVER_LIMIT"};

// Converts hitsAddend to hits_addend, the name in the .proto file.
std::string snake(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += '_';
    out += base::lower(c);
  }
  return out;
}

class RlsReader {
 public:
  RlsReader(std::string_view body, RlsJsonRequest& out) : json_(body, out.texts), request_(out.request) {
    out.texts.clear();
    request_.begin();
  }

  Result<void> read() {
    auto done = members("the request", [this](std::string_view name) -> Result<bool> {
      if (name == "domain") return is_read(text("domain", request_.domain));
      if (name == "descriptors") return is_read(each("descriptors", [this] { return descriptor(); }));
      if (name == "hits_addend") return is_read(number("hitsAddend", request_.hits_addend));
      return false;
    });
    if (!done) return done;
    if (!json_.at_end()) return broken("unexpected text after the request");
    request_.end();
    return {};
  }

 private:
  static Result<bool> is_read(const Result<void>& done) {
    if (!done) return fail(done.error());
    return true;
  }
  Result<void> broken(std::string_view why = {}) const {
    return fail(ErrorCode::invalid_argument, "invalid JSON: " + std::string(why.empty() ? json_.why() : why) +
                                                 ", at byte " + std::to_string(json_.at()));
  }
  Result<void> wrong(std::string_view where, std::string_view wanted) const {
    if (json_.is_broken()) return broken();
    return fail(ErrorCode::invalid_argument, std::string(where) + " must be " + std::string(wanted));
  }

  // Reads every member, by its name in the .proto file. `take` returns whether it knows the name.
  template <class Take>
  Result<void> members(std::string_view what, Take take) {
    if (!json_.take('{')) return wrong(what, "an object");
    std::vector<std::string> seen;
    std::string_view given;
    for (bool is_first = true; json_.next_member(given, is_first);) {
      seen.push_back(snake(given));
      if (std::ranges::count(seen, seen.back()) > 1) {
        return fail(ErrorCode::invalid_argument, "duplicate field " + base::in_quotes(given));
      }
      if (json_.next() == 'n') {
        if (!json_.skip_value()) return broken();
        continue;
      }
      const Result<bool> known = take(seen.back());
      if (!known) return fail(known.error());
      if (!*known) {
        return fail(ErrorCode::invalid_argument,
                    "unknown field " + base::in_quotes(given) + " in " + std::string(what));
      }
    }
    return json_.is_broken() ? broken() : Result<void>{};
  }

  template <class Take>
  Result<void> each(std::string_view what, Take take) {
    if (!json_.take('[')) return wrong(what, "an array");
    for (bool is_first = true; json_.next_element(is_first);) {
      if (auto done = take(); !done) return done;
    }
    return json_.is_broken() ? broken() : Result<void>{};
  }

  Result<void> descriptor() {
    if (request_.descriptors.size() == kRlsDescriptorsMax) return fail(too_many_descriptors());
    RlsDescriptor& own = request_.add_descriptor();
    return members("a descriptor", [&](std::string_view name) -> Result<bool> {
      if (name == "entries") return is_read(each("entries", [this] { return entry(); }));
      if (name == "limit") return is_read(limit(own.limit.emplace()));
      if (name == "hits_addend") return is_read(number("hitsAddend", own.hits_addend.emplace()));
      if (name == "is_negative_hits") return is_read(flag("isNegativeHits", own.is_negative_hits));
      return false;
    });
  }

  Result<void> entry() {
    if (request_.descriptors.back().count == kRlsEntriesMax) return fail(too_many_entries());
    Attribute pair;
    auto done = members("an entry", [&](std::string_view name) -> Result<bool> {
      if (name == "key") return is_read(text("key", pair.name));
      if (name == "value") return is_read(text("value", pair.value));
      return false;
    });
    if (done) request_.add_entry(pair);
    return done;
  }

  Result<void> limit(RlsOverride& own) {
    return members("a limit", [&](std::string_view name) -> Result<bool> {
      if (name == "unit") return is_read(unit(own.unit));
      if (name == "requests_per_unit") return is_read(number("requestsPerUnit", own.requests_per_unit));
      return false;
    });
  }

  Result<void> unit(RlsUnit& out) {
    if (json_.next() != '"') {
      std::uint32_t given = 0;
      if (auto read = number("unit", given); !read) return read;
      out = given < kUnits.size() ? static_cast<RlsUnit>(given) : RlsUnit::unknown;
      return {};
    }
    std::string_view name;
    if (!json_.read_text(name)) return broken();
    const auto* known = std::ranges::find(kUnits, name);
    if (known == kUnits.end()) return wrong("unit", "one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR");
    out = static_cast<RlsUnit>(known - kUnits.begin());
    return {};
  }

  // 3, "3", 3.0 and 3e0 are the same number.
  template <class Number>
  Result<void> number(std::string_view where, Number& out) {
    std::string_view digits;
    const char first = json_.next();
    const bool is_text = first == '"', is_number = first == '-' || (first >= '0' && first <= '9');
    const bool is_there = is_text ? json_.read_text(digits) : is_number && json_.read_number(digits);
    std::optional<std::uint64_t> given;
    if (is_there) given = whole(digits);
    constexpr std::uint64_t kMost = std::numeric_limits<Number>::max();
    if (!given || *given > kMost) return wrong(where, "a whole number from 0 to " + std::to_string(kMost));
    out = static_cast<Number>(*given);
    return {};
  }

  static std::optional<std::uint64_t> whole(std::string_view digits) {
    if (const auto number = base::to_number<std::uint64_t>(digits)) return number;
    constexpr double kExactMax = 9'007'199'254'740'992.0;
    const auto value = base::to_number<double>(digits);
    if (!value || !(*value >= 0 && *value <= kExactMax)) return std::nullopt;
    const auto number = static_cast<std::uint64_t>(*value);
    return static_cast<double>(number) < *value ? std::nullopt : std::optional(number);
  }

  Result<void> flag(std::string_view where, bool& out) {
    const char first = json_.next();
    if ((first != 't' && first != 'f') || !json_.skip_value()) return wrong(where, "true or false");
    out = first == 't';
    return {};
  }

  Result<void> text(std::string_view where, std::string_view& out) {
    if (json_.next() != '"' || !json_.read_text(out)) return wrong(where, "a string");
    return {};
  }

  JsonReader json_;
  RlsRequest& request_;
};

void append_status(JsonWriter& json, const RlsStatus& status) {
  json.begin_object();
  json.text("code", kCodes[static_cast<std::size_t>(status.code)]);
  if (const auto& limit = status.current_limit) {
    json.begin_object("currentLimit");
    if (limit->requests_per_unit != 0) json.number("requestsPerUnit", limit->requests_per_unit);
    if (limit->unit != RlsUnit::unknown) json.text("unit", kUnits[static_cast<std::size_t>(limit->unit)]);
    if (!limit->name.empty()) json.text("name", limit->name);
    json.end_object();
  }
  if (status.limit_remaining != 0) json.number("limitRemaining", status.limit_remaining);
  if (status.seconds_until_reset) json.text("durationUntilReset", std::to_string(*status.seconds_until_reset) + "s");
  json.end_object();
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

void append_metadata(JsonWriter& json, const RlsMetadata& metadata) {
  json.begin_object("dynamicMetadata");
  json.text("rule", metadata.rule);
  json.flag("allowed", metadata.allowed);
  json.raw("remaining", std::to_string(metadata.remaining));
  if (metadata.retry_after) json.raw("retry_after", std::to_string(*metadata.retry_after));
  if (metadata.decided_by != DecidedBy::here) json.text("decided_by", weir::to_string(metadata.decided_by));
  json.end_object();
}

}  // namespace

Result<void> read_rls_json(std::string_view body, RlsJsonRequest& out) { return RlsReader(body, out).read(); }

void append_rls_json(const RlsResponse& response, std::string& out) {
  JsonWriter json(out);
  json.begin_object();
  json.text("overallCode", kCodes[static_cast<std::size_t>(response.overall_code)]);
  if (!response.statuses.empty()) {
    json.begin_array("statuses");
    for (const RlsStatus& status : response.statuses) append_status(json, status);
    json.end_array();
  }
  if (!response.response_headers.empty()) {
    json.begin_array("responseHeadersToAdd");
    for (const RlsHeader& header : response.response_headers) {
      json.begin_object();
      if (!header.key.empty()) json.text("key", header.key);
      if (!header.value.empty()) json.text("value", header.value);
      json.end_object();
    }
    json.end_array();
  }
  if (!response.raw_body.empty()) json.text("rawBody", base64(response.raw_body));
  if (response.dynamic_metadata) append_metadata(json, *response.dynamic_metadata);
  json.end_object();
}

}  // namespace weir::protocol
