// Computes rates and draws the screen. See top_screen.h.
#include "cli/top_screen.h"

#include <algorithm>
#include <cstdio>

#include "cli/table_text.h"
#include "protocol/seconds.h"
#include "weir/rule_counts.h"

namespace weir::cli {
namespace {

constexpr std::size_t kHistoryMax = 120;
constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// 1234567 is printed as `1,234,567`; small rates have one decimal place.
std::string rate_text(double value) {
  if (value > 0 && value < 9.95) return tenths(value);
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.0f", value);
  std::string out = digits;
  for (std::size_t i = out.size(); i > 3;) out.insert(i -= 3, 1, ',');
  return out;
}

std::string percent(double part, double whole) { return tenths(whole > 0 ? 100 * part / whole : 0.0) + " %"; }

// The first `width` characters.
std::string cut(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && ++count > width) break;
  }
  return std::string(text.substr(0, end));
}

// The rate with this name; an empty one if there is none yet.
Rate rate_of(const std::map<std::string, Rate>& rates, const std::string& name) {
  const auto found = rates.find(name);
  return found == rates.end() ? Rate{} : found->second;
}

std::string padded(std::string text, std::size_t width, bool is_number = false) {
  text = cut(printable(text), width);
  const std::string gap(width - columns(text), ' ');
  return is_number ? gap + text : text + gap;
}

}  // namespace

enum class Tone : std::uint8_t { plain, head, alarm, quiet };

struct TopScreen::Line {
  std::string text;
  Tone tone = Tone::plain;
};

void Rate::add(std::int64_t count, Micros now) {
  const double seconds = static_cast<double>((now - at_).count()) / 1e6;
  if (last_ >= 0 && seconds > 0) {
    // If the count fell, the server was restarted.
    history_.push_back(static_cast<double>(std::max<std::int64_t>(count - (count < last_ ? 0 : last_), 0)) / seconds);
    if (history_.size() > kHistoryMax) history_.erase(history_.begin());
  }
  last_ = count;
  at_ = now;
}

std::string sparkline(const std::vector<double>& values, std::size_t width) {
  const std::size_t count = std::min(width, values.size());
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(count);
  const double most = count == 0 ? 0 : *std::max_element(begin, values.end());
  std::string out(width - count, ' ');
  for (auto value = begin; value != values.end(); ++value) {
    const double part = most > 0 ? *value / most : 0;
    out += kBlocks[static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * 7 + 0.5)];
  }
  return out;
}

void TopScreen::take(TopAnswers answers, Micros now) {
  last_ = std::move(answers);
  if (!last_.problem.empty()) return;
  const protocol::JsonValue& others = last_.status.at("decisions");
  std::int64_t allowed = others.at("no_rule").whole() + others.at("skipped").whole(), denied = 0;
  bool has_inline = false;  // a rule named like this shares its counts with limits that clients send
  for (const protocol::JsonValue& rule : last_.rules.at("rules").items) {
    const std::int64_t passed = rule.at("allowed").whole(), refused = rule.at("denied").whole();
    allowed += passed;
    denied += refused;
    has_inline = has_inline || rule.at("name").text == kInlineRule;
    rule_rates_[rule.at("name").text].add(passed + refused, now);
    rule_denials_[rule.at("name").text].add(refused, now);
  }
  if (!has_inline) {
    allowed += others.at("inline_allowed").whole();
    denied += others.at("inline_denied").whole();
  }
  allowed_.add(allowed, now);
  denied_.add(denied, now);
  for (const protocol::JsonValue& listener : last_.status.at("listeners").items) {
    listeners_[listener.at("name").text].add(listener.at("requests").whole(), now);
  }
}

std::vector<TopScreen::Line> TopScreen::lines(std::string_view by) const {
  std::vector<Line> out;
  const protocol::JsonValue& status = last_.status;
  std::string head = "weir " + status.at("version").text + "   up " +
                     protocol::wait_text(status.at("uptime_seconds").number()) + "   " +
                     base::counted(status.at("config").at("rules").text, "rule");
  if (status.at("table").at("capacity").whole() > 0) {
    head += "   table " + percent(status.at("table").at("fill").number(), 1);
  }
  out.push_back({head, Tone::head});
  if (!last_.problem.empty()) out.push_back({last_.problem, Tone::alarm});
  if (status.at("kill_switch").is_true) out.push_back({"KILL SWITCH: all rules are off", Tone::alarm});
  const protocol::JsonValue& reload = status.at("config").at("last_reload");
  if (!reload.at("error").text.empty())
    out.push_back({"config reload failed: " + reload.at("error").text, Tone::alarm});

  std::string listeners;
  for (const protocol::JsonValue& listener : status.at("listeners").items) {
    const std::string& name = listener.at("name").text;
    listeners += (listeners.empty() ? "" : "   ") + name + " " + rate_text(rate_of(listeners_, name).now()) + "/s, " +
                 listener.at("connections").text + " open";
  }
  out.push_back({listeners, Tone::plain});
  out.push_back(
      {"allowed " + padded(rate_text(allowed_.now()) + "/s", 14, true) + "  " + sparkline(allowed_.history(), 40)});
  out.push_back({"denied  " + padded(rate_text(denied_.now()) + "/s", 14, true) + "  " +
                 sparkline(denied_.history(), 40) + "  " + percent(denied_.now(), allowed_.now() + denied_.now())});
  out.push_back({});

  out.push_back({padded("rule", 20) + padded("mode", 9) + padded("per", 16) + padded("limits", 22) +
                     padded("now/s", 10, true) + padded("denied", 10, true),
                 Tone::head});
  for (const protocol::JsonValue& rule : last_.rules.at("rules").items) {
    const std::string& name = rule.at("name").text;
    const Rate denials = rate_of(rule_denials_, name);
    const double all = rate_of(rule_rates_, name).now(), refused = denials.now();
    out.push_back({padded(name, 19) + " " + padded(rule.at("mode").text, 8) + " " + padded(rule.at("per").text, 15) +
                       " " + padded(joined(rule.at("limits")), 21) + " " + padded(rate_text(all), 10, true) +
                       padded(percent(refused, all), 10, true) + "  " + sparkline(denials.history(), 20),
                   refused > 0 ? Tone::plain : Tone::quiet});
  }
  out.push_back({});
  const std::string most =
      "most " + std::string(by) + ", last " + protocol::wait_text(last_.keys.at("seconds").number());
  out.push_back(
      {padded(most, 30) + padded("hits", 6, true) + padded("denied", 10, true) + "  " + padded("rule", 16) + "  key",
       Tone::head});
  for (const protocol::JsonValue& key : last_.keys.at("keys").items) {
    out.push_back({padded(key.at("hits").text, 36, true) + padded(key.at("denied").text, 10, true) + "  " +
                   padded(key.at("rule").text, 16) + "  " + printable(key.at("key").text)});
  }
  if (last_.keys.at("keys").items.empty()) out.push_back({"no keys yet", Tone::quiet});
  return out;
}

std::string TopScreen::draw(TopSize size, std::string_view by, bool has_colour) const {
  std::string out;
  std::size_t left = size.height;
  for (const Line& line : lines(by)) {
    if (left-- == 0) break;
    const char* const begin = !has_colour                ? ""
                              : line.tone == Tone::alarm ? "\x1b[7;1m"
                              : line.tone == Tone::head  ? "\x1b[1m"
                              : line.tone == Tone::quiet ? "\x1b[2m"
                                                         : "";
    out.append(begin).append(cut(printable(line.text), size.width)).append(*begin != 0 ? "\x1b[0m" : "").append("\n");
  }
  return out;
}

}  // namespace weir::cli
