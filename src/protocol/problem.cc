// Writes JSON bodies. See problem.h.
#include "protocol/problem.h"

#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "protocol/json_writer.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

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
