// Parses the JSON of checks. See check_json.h.
#include "protocol/check_json.h"

#include <array>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "protocol/request_error.h"
#include "weir/verdict.h"

namespace weir::protocol {
namespace {

enum Member : std::size_t {
  kKey,
  kLimit,
  kCost,
  kAlgorithm,
  kId,
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

struct MemberOf {
  std::string_view name;
  std::string_view wanted;
  std::string_view CheckItem::*text;  // null: not a text, or read differently
};

constexpr std::array<MemberOf, kMembers> kTable = {{
    {"key", "a string such as \"user:42\"", &CheckItem::key},
    {"limit", "a string such as \"100/minute\"", &CheckItem::limit},
    {"cost", "a whole number such as 1", nullptr},
    {"algorithm", "a string such as \"token_bucket\"", nullptr},
    {"id", "a string such as \"order-7\"", &CheckItem::id},
    {"user", "a string such as \"42\"", &CheckItem::user},
    {"api_key", "a string", &CheckItem::api_key},
    {"ip", "a string such as \"192.0.2.1\"", &CheckItem::ip},
    {"tenant", "a string such as \"acme\"", &CheckItem::tenant},
    {"plan", "a string such as \"free\"", &CheckItem::plan},
    {"method", "a string such as \"GET\"", &CheckItem::method},
    {"host", "a string such as \"api.example.com\"", &CheckItem::host},
    {"path", "a string such as \"/api/search\"", &CheckItem::path},
    {"headers", "an object of strings such as {\"x-org\":\"acme\"}", nullptr},
    {"entries", "an object of strings such as {\"remote\":\"acme\"}", nullptr},
}};

using Members = std::uint32_t;
constexpr Members bit(Member member) { return Members{1} << member; }
constexpr Members kAll = (Members{1} << kMembers) - 1;
constexpr Members kOfRules = kAll & ~(bit(kUser) - 1);

struct Shape {
  Members known;
  Members needed;
  std::string_view example;
};

constexpr std::array<Shape, 4> kShapes = {{
    {kAll, 0, R"({"key":"user:42","limit":"100/minute"})"},
    {kAll, bit(kId), R"({"id":"7f3a","key":"user:42","limit":"100/minute","cost":3})"},
    {bit(kKey) | bit(kLimit) | bit(kId) | bit(kCost), bit(kKey) | bit(kLimit),
     R"({"key":"user:42","limit":"20 concurrent"})"},
    {bit(kKey) | bit(kId), bit(kKey) | bit(kId), R"({"key":"user:42","id":"7f3a"})"},
}};

std::string in_double_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

tl::unexpected<Error> about(Member member, Error error) {
  error.message.insert(0, in_double_quotes(kTable[member].name) + ": ");
  return fail(std::move(error));
}

tl::unexpected<Error> not_json(const JsonReader& json, std::string_view example) {
  return wrong("the body is not JSON: " + std::string(json.why()) + " at byte " + std::to_string(json.at() + 1) +
               "; send an object such as " + std::string(example));
}

// Reads one object. Stops at the first error; the reader is then somewhere within the object.
class CheckReader {
 public:
  CheckReader(JsonReader& json, const Shape& shape, CheckItem& item, std::size_t key_max)
      : json_(json), shape_(shape), item_(item), key_max_(key_max) {}

  // Returns false on an error.
  bool read() {
    item_.clear();
    if (json_.next() != '{') {
      const std::string found = json_.found();
      if (json_.is_broken()) return is_not_json();
      return fails("the body must be an object such as " + std::string(shape_.example) + ", found " + found);
    }
    json_.take('{');
    std::string_view name;
    bool is_first = true;
    while (json_.next_member(name, is_first)) {
      if (!read_member(name)) return false;
    }
    if (json_.is_broken()) return is_not_json();
    return judge();
  }

  std::optional<Error>& error() { return error_; }

 private:
  bool fails(ErrorCode code, std::string message) {
    error_ = Error{code, std::move(message), 0};
    return false;
  }
  bool fails(std::string message) { return fails(ErrorCode::invalid_argument, std::move(message)); }
  bool fails_about(Member member, Error error) {
    error_ = about(member, std::move(error)).value();
    return false;
  }
  bool is_not_json() {
    error_ = not_json(json_, shape_.example).value();
    return false;
  }

  bool read_member(std::string_view name) {
    std::size_t member = 0;
    while (member < kMembers && kTable[member].name != name) ++member;
    if (member == kMembers || (shape_.known & bit(static_cast<Member>(member))) == 0) return unknown(name);
    if ((seen_ & bit(static_cast<Member>(member))) != 0) {
      return fails(in_double_quotes(name) + " is given twice; give it once");
    }
    seen_ |= bit(static_cast<Member>(member));
    return read_value(static_cast<Member>(member));
  }

  bool read_value(Member member) {
    switch (member) {
      case kCost:
        return read_cost();
      case kHeaders:
        return read_attributes(member, item_.headers);
      case kEntries:
        return read_attributes(member, item_.entries);
      case kAlgorithm: {
        std::string_view name;
        if (!read_text(member, name)) return false;
        auto algorithm = parse_algorithm(name);
        if (!algorithm) return fails_about(member, std::move(algorithm.error()));
        item_.algorithm = *algorithm;
        return true;
      }
      default:
        return read_text(member, item_.*kTable[member].text);
    }
  }

  bool wrong_type(Member member) {
    const std::string found = json_.found();
    if (json_.is_broken()) return is_not_json();
    return fails(in_double_quotes(kTable[member].name)
                     .append(" must be ")
                     .append(kTable[member].wanted)
                     .append(", found ")
                     .append(found));
  }

  bool read_text(Member member, std::string_view& text) {
    if (json_.next() != '"') return wrong_type(member);
    if (!json_.read_text(text)) return is_not_json();
    return true;
  }

  // 3.0 is an integer too, and some clients send only such numbers.
  static std::string_view without_zeros(std::string_view number) {
    const std::size_t dot = number.find('.');
    if (dot == number.npos || number.find_first_not_of('0', dot + 1) != number.npos) return number;
    return number.substr(0, dot);
  }

  bool read_cost() {
    const char first = json_.next();
    if (first != '-' && (first < '0' || first > '9')) return wrong_type(kCost);
    const std::size_t begin = json_.at();
    std::string_view number;
    if (!json_.read_number(number)) return is_not_json();
    number = without_zeros(number);
    if (number.find_first_of(".eE") != number.npos) {
      json_.go_back(begin);
      return wrong_type(kCost);
    }
    const auto value = base::to_number<std::int64_t>(number);
    if (!value) {
      return fails(ErrorCode::out_of_range, "\"cost\" is " + std::string(number.substr(0, 40)) +
                                                "; the range is -2^53 to 2^53 (9007199254740992)");
    }
    if (auto error = refuse_cost(*value)) return fails_about(kCost, std::move(*error));
    item_.cost = *value;
    return true;
  }

  bool read_attributes(Member member, std::vector<Attribute>& attributes) {
    if (json_.next() != '{') return wrong_type(member);
    json_.take('{');
    bool is_first = true;
    Attribute attribute;
    while (json_.next_member(attribute.name, is_first)) {
      if (attributes.size() == kJsonAttributesMax) {
        return fails(ErrorCode::out_of_range, in_double_quotes(kTable[member].name) + " has more than " +
                                                  std::to_string(kJsonAttributesMax) + " members");
      }
      if (!read_text(member, attribute.value)) return false;
      attributes.push_back(attribute);
    }
    if (json_.is_broken()) return is_not_json();
    return true;
  }

  bool unknown(std::string_view name) {
    std::vector<std::string_view> known;
    for (std::size_t member = 0; member < kMembers; ++member) {
      if ((shape_.known & bit(static_cast<Member>(member))) != 0) known.push_back(kTable[member].name);
    }
    std::string message = "unknown member " + base::in_quotes(name) + "; ";
    // The response to /v1/reserve calls it that.
    if (name == "reservation" && (shape_.known & bit(kId)) != 0) return fails(message + "write \"id\"");
    const std::string_view meant = base::nearest(name, known);
    if (!meant.empty()) return fails(message.append("did you mean ").append(in_double_quotes(meant)).append("?"));
    message += "known are";
    for (const std::string_view one : known) message.append(" ").append(in_double_quotes(one));
    return fails(std::move(message));
  }

  bool missing(Member member) {
    return fails(in_double_quotes(kTable[member].name) + " is missing; the body must be an object such as " +
                 std::string(shape_.example));
  }

  // Checks the members against each other.
  bool judge() {
    const Members of_rules = seen_ & kOfRules;
    if (of_rules != 0 && (seen_ & (bit(kKey) | bit(kLimit) | bit(kAlgorithm))) != 0) {
      std::size_t first = kUser;
      while ((of_rules & bit(static_cast<Member>(first))) == 0) ++first;
      return fails(in_double_quotes(kTable[first].name) +
                   " is for rules, \"key\" and \"limit\" bypass them; give one or the other");
    }
    item_.by_rules = of_rules != 0;
    const Members needed =
        shape_.needed | (of_rules != 0 || shape_.needed == kShapes.back().needed ? 0 : bit(kKey) | bit(kLimit));
    for (const Member member : {kKey, kLimit, kId}) {
      if ((needed & ~seen_ & bit(member)) != 0) return missing(member);
    }
    if ((seen_ & bit(kKey)) != 0) {
      if (auto error = refuse_key(item_.key, key_max_)) return fails_about(kKey, std::move(*error));
    }
    if ((seen_ & bit(kId)) != 0) return judge_id();
    return true;
  }

  bool judge_id() {
    if (!item_.id.empty() && item_.id.size() <= kIdBytesMax) return true;
    return fails(ErrorCode::out_of_range,
                 "\"id\" has " + std::to_string(item_.id.size()) + " bytes; give 1 to " + std::to_string(kIdBytesMax));
  }

  JsonReader& json_;
  const Shape& shape_;
  CheckItem& item_;
  std::size_t key_max_;
  Members seen_ = 0;
  std::optional<Error> error_;
};

constexpr std::string_view kListExample = R"({"checks":[{"key":"user:42","limit":"100/minute"}]})";

}  // namespace

Request CheckItem::request() const {
  return {.user = user,
          .api_key = api_key,
          .ip = ip,
          .tenant = tenant,
          .plan = plan,
          .method = method,
          .host = host,
          .path = path,
          .headers = headers,
          .entries = entries,
          .cost = cost};
}

void CheckItem::clear() {
  key = limit = id = {};
  algorithm.reset();
  cost = 1;
  by_rules = false;
  user = api_key = ip = tenant = plan = method = host = path = {};
  headers.clear();
  entries.clear();
}

Result<void> parse_check(std::string_view body, CheckShape shape, CheckItem& item, JsonTexts& texts,
                         std::size_t key_max) {
  const Shape& wanted = kShapes[static_cast<std::size_t>(shape)];
  JsonReader json(body, texts);
  if (json.at_end()) {
    return wrong("the body is empty; send an object such as " + std::string(wanted.example));
  }
  CheckReader reader(json, wanted, item, key_max);
  if (!reader.read()) return fail(*std::move(reader.error()));
  if (json.at_end()) return {};
  return wrong("unexpected text after the object, from byte " + std::to_string(json.at() + 1) + " on; send one object");
}

tl::unexpected<Error> CheckList::broken() const { return not_json(json_, kListExample); }

void CheckList::go_back(std::size_t place) {
  json_.go_back(place);
  has_begun_ = true;
  is_first_ = true;
}

Result<bool> CheckList::begin() {
  has_begun_ = true;
  if (json_.take('[')) return true;
  const std::string expected =
      "the body must be an array of checks, or an object such as " + std::string(kListExample) + ", found ";
  std::string_view name;
  bool is_first = true;
  if (!json_.take('{')) {
    if (json_.at_end()) return wrong("the body is empty; send an object such as " + std::string(kListExample));
    const std::string found = json_.found();
    if (json_.is_broken()) return broken();
    return wrong(expected + found);
  }
  has_name_ = true;
  if (!json_.next_member(name, is_first)) {
    if (json_.is_broken()) return broken();
    return wrong("\"checks\" is missing; " + expected + "{}");
  }
  if (name != "checks") return wrong("unknown member " + base::in_quotes(name) + "; the only one is \"checks\"");
  if (json_.take('[')) return true;
  const std::string found = json_.found();
  if (json_.is_broken()) return broken();
  return wrong("\"checks\" must be an array, found " + found);
}

Result<bool> CheckList::end() {
  std::string_view name;
  bool is_first = false;
  if (has_name_ && json_.next_member(name, is_first)) {
    return wrong("unknown member " + base::in_quotes(name) + "; the only one is \"checks\"");
  }
  if (json_.is_broken()) return broken();
  if (json_.at_end()) return false;
  return wrong("unexpected text after the checks, from byte " + std::to_string(json_.at() + 1) + " on; send one list");
}

Result<bool> CheckList::next(CheckItem& item, std::optional<Error>& wrong) {
  if (!has_begun_) {
    if (auto begun = begin(); !begun) return begun;
  }
  if (!json_.next_element(is_first_)) {
    if (json_.is_broken()) return broken();
    return end();
  }
  json_.next();
  place_ = json_.at();
  wrong.reset();
  CheckReader reader(json_, kShapes[0], item, key_max_);
  if (reader.read()) return true;
  if (json_.is_broken()) return broken();
  wrong = std::move(reader.error());
  json_.go_back(place_);
  if (!json_.skip_value()) return broken();
  return true;
}

}  // namespace weir::protocol
