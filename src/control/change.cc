// Converts changes to and from lines of JSON. See change.h.
#include "control/change.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "policy/dimension.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace weir::control {
namespace {

constexpr std::string_view kCheck = ",\"check\":\"";
constexpr std::size_t kCheckDigits = 16;

std::string check_of(std::string_view text) { return base::hex(base::sha256(text)).substr(0, kCheckDigits); }

tl::unexpected<Error> damaged(std::string why) { return fail(ErrorCode::invalid_argument, std::move(why)); }

struct TextMember {
  std::string_view name;
  std::string& (*of)(Change&);
};
constexpr std::array<TextMember, 8> kTexts = {{
    {"who", [](Change& change) -> std::string& { return change.by.who; }},
    {"from", [](Change& change) -> std::string& { return change.by.from; }},
    {"what", [](Change& change) -> std::string& { return change.what; }},
    {"reason", [](Change& change) -> std::string& { return change.by.reason; }},
    {"rule", [](Change& change) -> std::string& { return change.rule; }},
    {"value", [](Change& change) -> std::string& { return change.value; }},
    {"text", [](Change& change) -> std::string& { return change.text; }},
    {"link", [](Change& change) -> std::string& { return change.link; }},
}};

// Whether the member was valid.
bool read_number(protocol::JsonReader& json, std::uint64_t& out) {
  std::string_view text;
  if (json.next() == 'n') return json.skip_value();
  if (!json.read_number(text)) return false;
  const auto value = base::to_number<std::int64_t>(text);
  if (!value || *value < 0) return false;
  out = static_cast<std::uint64_t>(*value);
  return true;
}

bool read_time(protocol::JsonReader& json, std::optional<Micros>& out) {
  std::string_view text;
  if (json.next() == 'n') return json.skip_value();
  if (!json.read_text(text)) return false;
  const auto time = policy::parse_time(text);
  if (!time) return false;
  out = *time;
  return true;
}

bool read_kind(protocol::JsonReader& json, ChangeKind& out) {
  std::string_view text;
  if (!json.read_text(text)) return false;
  const auto* const kind = std::ranges::find(kChangeKinds, text);
  if (kind == kChangeKinds.end()) return false;
  out = static_cast<ChangeKind>(kind - kChangeKinds.begin());
  return true;
}

bool read_member(protocol::JsonReader& json, std::string_view name, Change& change) {
  if (name == "id") return read_number(json, change.id);
  if (name == "undoes") return read_number(json, change.undoes);
  if (name == "until") return read_time(json, change.until);
  if (name == "kind") return read_kind(json, change.kind);
  if (name == "at") {
    std::optional<Micros> at;
    if (!read_time(json, at)) return false;
    change.at = at.value_or(Micros{0});
    return true;
  }
  for (const TextMember& member : kTexts) {
    if (member.name != name) continue;
    std::string_view text;
    if (!json.read_text(text)) return false;
    member.of(change).assign(text);
    return true;
  }
  return json.skip_value();  // `check`, and members of later versions
}

}  // namespace

// The last change's line includes its own link, and so all changes before it.
std::string link_of(const Change* last, Change change) {
  change.link.clear();
  return check_of((last == nullptr ? std::string() : to_line(*last)) + to_line(change));
}

std::string to_line(const Change& change) {
  std::string line;
  protocol::JsonWriter json(line);
  json.begin_object();
  json.number("id", change.id);
  json.text("at", policy::time_text(change.at));
  json.text("who", change.by.who);
  json.text("from", change.by.from);
  json.text("kind", to_string(change.kind));
  json.text("what", change.what);
  json.text("reason", change.by.reason);
  change.until ? json.text("until", policy::time_text(*change.until)) : json.null("until");
  change.undoes > 0 ? json.number("undoes", change.undoes) : json.null("undoes");
  json.text("rule", change.rule);
  json.text("value", change.value);
  json.text("text", change.text);
  if (!change.link.empty()) json.text("link", change.link);
  const std::string check = check_of(line);
  return line.append(kCheck).append(check).append("\"}\n");
}

// Compares up to the end of the text: `0` matches any digit and, in the id, any number of digits.
bool may_begin_line(std::string_view text) {
  constexpr std::string_view kId = "{\"id\":", kRest = ",\"at\":\"0000-00-00T00:00:00Z\",\"who\":\"";
  if (text.substr(0, kId.size()) != kId.substr(0, text.size())) return false;
  text.remove_prefix(std::min(kId.size(), text.size()));
  std::size_t digits = 0;
  while (digits < text.size() && base::is_digit(text[digits])) ++digits;
  if (!text.empty() && digits == 0) return false;
  text.remove_prefix(digits);
  const std::string_view rest = kRest.substr(0, text.size());
  return std::ranges::equal(text.substr(0, rest.size()), rest,
                            [&](char c, char form) { return form == '0' ? base::is_digit(c) : c == form; });
}

Result<Change> parse_line(std::string_view line) {
  const std::size_t at = line.rfind(kCheck);
  if (at == line.npos) return damaged("its end is missing");
  if (line.substr(at + kCheck.size()) != check_of(line.substr(0, at)) + "\"}")
    return damaged("its checksum does not match");
  protocol::JsonTexts texts;
  protocol::JsonReader json(line, texts);
  Change change;
  std::string_view name;
  bool is_first = true;
  if (!json.take('{')) return damaged("it is not a JSON object");
  while (json.next_member(name, is_first)) {
    if (!read_member(json, name, change)) return damaged("its member " + std::string(name) + " is unknown or invalid");
  }
  if (json.is_broken() || !json.at_end()) return damaged("it is not a JSON object");
  if (change.id == 0) return damaged("it has no id");
  return change;
}

}  // namespace weir::control
