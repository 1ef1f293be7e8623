// Writes JSON bodies. See problem.h.
#include "protocol/problem.h"

#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/json_writer.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

void append_escaped_ascii(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out.push_back('\\');
    out.push_back(c);
  } else if (byte < 0x20 || byte == 0x7F) {
    base::append_hex(out.append("\\u00"), c);
  } else {
    out.push_back(c);
  }
}

// Writes at most 27 characters.
void put_seconds(base::Pen& pen, Micros wait) {
  if (wait == kNever) return pen.put("null");
  const std::int64_t us = wait.count() < 0 ? 0 : wait.count();
  pen.put_digits(us / kMicrosPerSecond);
  std::int64_t rest = us % kMicrosPerSecond;
  if (rest == 0) return;
  char places[7] = {'.'};
  for (std::size_t i = 6; i > 0; --i, rest /= 10) places[i] = static_cast<char>('0' + rest % 10);
  std::size_t size = 7;
  while (places[size - 1] == '0') --size;
  pen.put({places, size});
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;  // start of the text that is not appended yet
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_plain = byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
    if (is_plain) {
      ++at;
      continue;
    }
    out.append(text.substr(plain, at - plain));
    const std::size_t length = base::utf8_length(text.substr(at));
    if (length == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (length == 1) {
      append_escaped_ascii(out, text[at]);
    } else {
      out.append(text.substr(at, length));
    }
    at += length == 0 ? 1 : length;
    plain = at;
  }
  out.append(text.substr(plain)).push_back('"');
}

void append_json_seconds(std::string& out, Micros wait) {
  char text[32];
  base::Pen pen(text);
  put_seconds(pen, wait);
  out.append(text, static_cast<std::size_t>(pen.at() - text));
}

void append_decision_members(std::string& out, const Decision& decision) {
  char text[256];  // about 100 characters of names, two numbers of 20, three of 27
  base::Pen pen(text);
  pen.put(decision.allowed ? "\"allowed\":true,\"limit\":" : "\"allowed\":false,\"limit\":");
  pen.put_digits(decision.limit);
  pen.put(",\"remaining\":");
  pen.put_digits(decision.remaining);
  pen.put(",\"reset_after\":");
  put_seconds(pen, decision.reset_after);
  pen.put(",\"retry_after\":");
  put_seconds(pen, decision.retry_after);
  pen.put(",\"delay\":");
  put_seconds(pen, decision.delay);
  if (decision.decided_by != DecidedBy::here) {
    pen.put(",\"decided_by\":\"");
    pen.put(weir::to_string(decision.decided_by));
    pen.put("\"");
  }
  out.append(text, static_cast<std::size_t>(pen.at() - text));
}

std::string problem_body(const Problem& problem) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.text("type", problem.type);
  json.text("title", problem.title);
  json.number("status", static_cast<std::uint64_t>(problem.status));
  json.text("detail", problem.detail);
  json.end_object();
  return out.append("\n");
}

}  // namespace weir::protocol
