// JSON bodies. See problem.h.
#include "protocol/problem.h"

#include <cstddef>
#include <cstdint>

#include "protocol/seconds.h"

namespace weir {
namespace {

// The length of the UTF-8 character that begins `text`, 0 if it is none: no overlong forms, no surrogates.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

void append_escaped_ascii(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out.push_back('\\');
    out.push_back(c);
  } else if (byte < 0x20 || byte == 0x7F) {
    out.append("\\u00");
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  } else {
    out.push_back(c);
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (length == 1) {
      append_escaped_ascii(out, text[at]);
    } else {
      out.append(text.substr(at, length));
    }
    at += length == 0 ? 1 : length;
  }
  out.push_back('"');
}

void append_json_seconds(std::string& out, Micros wait) {
  if (wait == kNever) {
    out.append("null");
    return;
  }
  const std::int64_t us = wait.count() < 0 ? 0 : wait.count();
  out.append(std::to_string(us / kMicrosPerSecond));
  const std::int64_t rest = us % kMicrosPerSecond;
  if (rest == 0) return;
  std::string places = std::to_string(kMicrosPerSecond + rest);  // a leading 1 keeps the zeros
  places.erase(places.find_last_not_of('0') + 1);
  out.push_back('.');
  out.append(places, 1);
}

void append_decision_members(std::string& out, const Decision& decision) {
  out.append("\"allowed\":").append(decision.allowed ? "true" : "false");
  out.append(",\"limit\":").append(std::to_string(decision.limit));
  out.append(",\"remaining\":").append(std::to_string(decision.remaining));
  out.append(",\"reset_after\":");
  append_json_seconds(out, decision.reset_after);
  out.append(",\"retry_after\":");
  append_json_seconds(out, decision.retry_after);
  out.append(",\"delay\":");
  append_json_seconds(out, decision.delay);
}

std::string problem_body(const Problem& problem) {
  std::string out = "{\"type\":";
  append_json_text(out, problem.type);
  out.append(",\"title\":");
  append_json_text(out, problem.title);
  out.append(",\"status\":").append(std::to_string(problem.status));
  out.append(",\"detail\":");
  append_json_text(out, problem.detail);
  return out.append("}\n");
}

}  // namespace weir
