// A target is decoded into letters that know whether they were escaped; each step makes other letters of them.
#include "slow_path.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace weir::test {
namespace {

struct Letter {
  unsigned char c = 0;
  bool is_escaped = false;
  friend auto operator<=>(const Letter&, const Letter&) = default;
  bool is(char plain) const { return c == static_cast<unsigned char>(plain) && !is_escaped; }
};
using Letters = std::vector<Letter>;

Letters letters_of(std::string_view text) {
  Letters out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (!is_escape) {
      out.push_back({static_cast<unsigned char>(text[i]), false});
      continue;
    }
    out.push_back({static_cast<unsigned char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)), true});
    i += 2;
  }
  return out;
}

std::string text_of(const Letters& letters) {
  std::string out;
  for (const Letter& letter : letters) {
    if (letter.is_escaped) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'%', kHex[letter.c / 16], kHex[letter.c % 16]};
    } else {
      out += static_cast<char>(letter.c);
    }
  }
  return out;
}

// How many bytes from here on are an ASCII letter, written longer than it need be; 0 if they are not.
std::size_t overlong_bytes(const Letters& all, std::size_t at, unsigned& value) {
  constexpr unsigned char kLeads[] = {0xC0, 0xE0, 0xF0, 0xF8, 0xFC};
  for (std::size_t more = 1; more <= 5; ++more) {
    const unsigned char lead = kLeads[more - 1];
    const bool is_lead = all[at].c == lead || (more == 1 && all[at].c == 0xC1);
    if (!is_lead || at + more >= all.size()) continue;
    value = all[at].c & 1U;
    bool is_whole = true;
    for (std::size_t i = 1; i <= more; ++i) {
      const unsigned char next = all[at + i].c;
      is_whole = is_whole && next >= 0x80 && next < 0xC0;
      value = value * 64 + next % 64;
    }
    if (is_whole && value < 128) return more + 1;
  }
  return 0;
}

Letters with_ascii(const Letters& all) {
  Letters out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    unsigned value = 0;
    if (const std::size_t bytes = overlong_bytes(all, i, value)) {
      out.push_back({static_cast<unsigned char>(value), true});
      i += bytes - 1;
    } else {
      out.push_back(all[i]);
    }
  }
  return out;
}

std::string_view until(std::string_view text, std::string_view bytes) {
  return text.substr(0, text.find_first_of(bytes));
}

// What stands before any path: http://host. Its length.
std::size_t host_length(std::string_view target, std::string_view ends) {
  const std::size_t scheme = target.find("://");
  if (scheme == target.npos || std::isalpha(static_cast<unsigned char>(target[0])) == 0) return 0;
  for (const char c : target.substr(0, scheme)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-' && c != '.') return 0;
  }
  return scheme + 3 + until(target.substr(scheme + 3), ends).size();
}

struct State {
  Letters path;
  std::string query;
  friend auto operator<=>(const State&, const State&) = default;
};

std::vector<Letters> split(const Letters& path) {
  std::vector<Letters> out;
  for (const Letter& letter : path) {
    if (letter.is('/')) {
      out.emplace_back();
    } else {
      out.back().push_back(letter);
    }
  }
  return out;
}

Letters join(const std::vector<Letters>& segments) {
  Letters out;
  for (const Letters& segment : segments) {
    out.push_back({'/', false});
    out.insert(out.end(), segment.begin(), segment.end());
  }
  if (out.empty()) out.push_back({'/', false});
  return out;
}

Letters rooted(Letters path) {
  if (path.empty() || !path[0].is('/')) path.insert(path.begin(), {'/', false});
  return path;
}

State without_fragment(State state) {
  const auto hash = std::ranges::find_if(state.path, [](const Letter& one) { return one.is('#'); });
  state.query = hash == state.path.end() ? std::string(until(state.query, "#")) : "";
  state.path.erase(hash, state.path.end());
  return state;
}

// For a gateway that forwards what it decoded: escaped marks are marks then.
State without_escaped_fragment(State state) {
  const auto hash = std::ranges::find(state.path, '#', &Letter::c);
  if (hash == state.path.end() || std::ranges::find(state.path, Letter{'#', true}) == state.path.end()) return state;
  return {{state.path.begin(), hash}, ""};
}

State with_escaped_query(const State& state, const std::string& target) {
  const auto mark = std::ranges::find(state.path, Letter{'?', true});
  if (mark == state.path.end()) return state;
  const std::size_t sent = std::min(target.find("%3f"), target.find("%3F"));
  return {{state.path.begin(), mark}, sent == target.npos ? state.query : target.substr(sent + 3)};
}

// Escapes that were escaped, and those that stand open until what is behind them is decoded.
Letters with_nested_escapes(const Letters& path) {
  std::string text = text_of(path);
  for (std::size_t at = 0; (at = text.find("%25", at)) != text.npos; ++at) {
    const bool is_nested = letters_of("%" + text.substr(at + 3, 2)).size() == 1;
    if (is_nested && text.size() > at + 4) text.erase(at + 1, 2);
  }
  return letters_of(text);
}

Letters with_plain_unreserved(Letters path) {
  if (std::ranges::find(path, '%', &Letter::c) == path.end()) return path;
  for (Letter& letter : path) {
    const bool is_unreserved = letter.c < 128 && (std::isalnum(letter.c) != 0 || letter.c == '-' || letter.c == '.' ||
                                                  letter.c == '_' || letter.c == '~');
    letter.is_escaped = letter.is_escaped && !is_unreserved;
  }
  return letters_of(text_of(path));
}

// //host/path without the host.
Letters without_host(const Letters& path) {
  const auto is_slash = [](const Letter& one) { return one.is('/'); };
  if (path.size() < 2 || !is_slash(path[1])) return path;
  const auto host = std::ranges::find_if_not(path, is_slash);
  return rooted({std::find_if(host, path.end(), is_slash), path.end()});
}

Letters unescaped(Letters path, char c) {
  for (Letter& letter : path) letter.is_escaped = letter.is_escaped && letter.c != static_cast<unsigned char>(c);
  return path;
}

Letters with_turned_backslashes(Letters path) {
  for (Letter& letter : path) {
    if (letter.is('\\')) letter.c = '/';
  }
  return path;
}

Letters without_parameters(const Letters& path) {
  std::vector<Letters> segments = split(path);
  for (Letters& segment : segments) {
    const auto cut = std::ranges::find_if(segment, [](const Letter& one) { return one.is(';'); });
    segment.erase(cut, segment.end());
  }
  return join(segments);
}

// A step at the end of a path is taken whether slashes follow or not: a gateway may have removed them.
Letters without_last_slashes(Letters path) {
  while (path.size() > 1 && path.back().is('/')) path.pop_back();
  return path;
}

Letters without_last_parameters(const Letters& path) {
  std::vector<Letters> segments = split(without_last_slashes(path));
  segments.back() = without_parameters(join({segments.back()}));
  segments.back().erase(segments.back().begin());
  return join(segments);
}

// A byte that Python takes for a blank and that is no part of a letter of UTF-8. Whether one is, is found by going back
// to where the letter would begin.
bool is_blank_at(const Letters& path, std::size_t at) {
  constexpr std::string_view kBlanks = "\t\n\v\f\r\x1C\x1D\x1E\x1F \x85\xA0";
  if (kBlanks.find(static_cast<char>(path[at].c)) == kBlanks.npos) return false;
  if (path[at].c < 0x80) return true;
  std::size_t begin = at;
  while (begin > 0 && path[begin].c >= 0x80 && path[begin].c < 0xC0) --begin;
  std::size_t bytes = 0;  // that the first one announces
  while (path[begin].c >= 0xC0 && bytes < 8 && (path[begin].c >> (7 - bytes)) % 2 == 1) ++bytes;
  return at - begin >= bytes;
}

Letters without_blanks(Letters path, bool may_be_escaped) {
  path = without_last_slashes(std::move(path));
  while (!path.empty() && is_blank_at(path, path.size() - 1) && (may_be_escaped || !path.back().is_escaped)) {
    path.pop_back();
  }
  return rooted(path);
}

Letters until_nul(Letters path) {
  path.erase(std::ranges::find(path, 0, &Letter::c), path.end());
  return path;
}

Letters without_empty(const Letters& path) {
  std::vector<Letters> segments = split(path);
  std::erase(segments, Letters{});
  return join(segments);
}

// Whether a segment is one dot or two, perhaps escaped ones.
bool is_dots(const Letters& segment, std::size_t count, bool may_be_escaped) {
  const Letters plain = may_be_escaped ? unescaped(segment, '.') : segment;
  return plain == Letters(count, {'.', false});
}

Letters without_dot(const Letters& path, bool may_be_escaped) {
  std::vector<Letters> segments = split(path);
  std::erase_if(segments, [&](const Letters& segment) { return is_dots(segment, 1, may_be_escaped); });
  return join(segments);
}

Letters without_dots(const Letters& path, bool may_be_escaped) {
  std::vector<Letters> kept;
  for (const Letters& segment : split(path)) {
    if (!is_dots(segment, 2, may_be_escaped)) {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  return join(kept);
}

// Every step that some gateway or server takes, whether it changes anything or not.
std::vector<State> next_of(const State& state, const std::string& target) {
  const Letters& path = state.path;
  std::vector<State> out = {without_fragment(state), without_escaped_fragment(state),
                            with_escaped_query(state, target)};
  for (Letters next :
       {unescaped(path, '/'), with_turned_backslashes(path), with_turned_backslashes(unescaped(path, '\\')),
        without_parameters(path), without_parameters(unescaped(path, ';')), with_ascii(path), without_host(path),
        until_nul(path), without_empty(path), without_dot(path, false), without_dot(path, true),
        without_dots(path, false), without_dots(path, true), with_nested_escapes(path), with_plain_unreserved(path),
        without_last_parameters(path), without_last_parameters(unescaped(path, ';')), without_blanks(path, false),
        without_blanks(path, true)}) {
    out.push_back({std::move(next), state.query});
  }
  return out;
}

SlowReading reading_of(const State& state, bool case_matters) {
  SlowReading out{.path = "", .query = state.query};
  for (const Letters& segment : split(without_empty(state.path))) {
    out.path += '/';
    for (const Letter& letter : segment) {
      const auto c = static_cast<char>(letter.c);
      if (c == '/') {
        out.path += "%2f";
      } else {
        out.path += !case_matters && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      }
    }
  }
  return out;
}

State state_behind(std::string_view rest) {
  const std::size_t mark = rest.find('?');
  return {rooted(letters_of(until(rest, "?"))), mark == rest.npos ? "" : std::string(rest.substr(mark + 1))};
}

// What follows `http:`; nothing if there is no scheme.
std::string_view behind_scheme(std::string_view target) {
  const std::size_t colon = target.find(':');
  if (colon == target.npos || host_length(std::string(target.substr(0, colon)) + "://", "") == 0) return {};
  return target.substr(colon + 1);
}

// What a target asks for behind its host, which ends at one of these bytes.
State state_of(std::string_view target, std::string_view ends) {
  return state_behind(target.substr(host_length(target, ends)));
}

}  // namespace

SlowReading slow_read(std::string_view target, bool case_matters) {
  if (target.empty()) return {};
  State state = without_fragment(state_of(target, "/\\?#"));
  for (const char c : std::string_view("\\;/.")) state.path = unescaped(state.path, c);
  state.path = without_empty(without_parameters(with_turned_backslashes(state.path)));
  state.path = without_dots(without_dot(state.path, false), false);
  return reading_of(state, case_matters);
}

std::optional<std::vector<SlowReading>> slow_readings(std::string_view target, bool case_matters) {
  const SlowReading normal = slow_read(target, case_matters);
  if (target.empty()) return {{normal}};
  std::set<State> known;
  for (const char* const hash : {"", "#"}) {
    for (const char* const backslash : {"", "\\"}) {
      for (const char* const early : {"", "%;{}|^`\"'<> "}) {
        const std::string ends = std::string("/?") + hash + backslash + early;
        known.insert(state_of(target, ends));
        std::string_view host = behind_scheme(target);
        if (!host.starts_with('/') && !host.starts_with('\\')) continue;
        while (host.starts_with('/') || host.starts_with('\\')) host.remove_prefix(1);
        known.insert(state_behind(host.substr(until(host, ends).size())));
      }
    }
  }
  const std::string_view behind = behind_scheme(target);
  if (!behind.empty() && !behind.starts_with("//")) known.insert(state_behind(behind));
  std::set<SlowReading> readings;
  std::vector<State> open(known.begin(), known.end());
  for (std::size_t work = 0; !open.empty() && readings.size() <= 8; work += 22 * target.size()) {
    if (work > 65'536 || known.size() > 32) return {};
    const State state = std::move(open.back());
    open.pop_back();
    readings.insert(reading_of(state, case_matters));
    for (State& next : next_of(state, std::string(target))) {
      if (known.insert(next).second) open.push_back(std::move(next));
    }
  }
  std::vector<SlowReading> out = {normal};
  readings.erase(normal);
  out.insert(out.end(), readings.begin(), readings.end());
  return out;
}

}  // namespace weir::test
