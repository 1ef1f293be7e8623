// Fuzzes both RESP parsers: the result does not depend on how the bytes are cut into pieces.
//
// The first byte of an input sets the size of the pieces. The rest is parsed once as requests and once as replies. An
// error that a server writes is one line, whatever bytes it quotes. A command is the same after writing and parsing it.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "resp/reply.h"
#include "resp/request.h"
#include "resp/writer.h"

namespace {

using weir::resp::Status;

// The result of parsing a stream: the requests or replies, the error, and how many bytes are left.
template <class Item>
struct Parsed {
  std::vector<Item> items;
  std::string reason;
  std::size_t left = 0;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

template <class Item, class Parser, class Take>
Parsed<Item> parse_all(std::string_view stream, std::size_t piece, Parser parser, Take take) {
  Parsed<Item> out;
  std::string pending;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    pending.append(stream.substr(at, piece));
    while (!pending.empty()) {
      auto parsed = parser.parse(pending);
      if (parsed.status == Status::need_more) break;
      if (parsed.status == Status::bad) {
        WEIR_ASSERT(!parsed.reason.empty());
        out.reason = std::string(parsed.reason);
        return out;
      }
      WEIR_ASSERT(parsed.consumed > 0 && parsed.consumed <= pending.size());
      out.items.push_back(take(parsed));
      pending.erase(0, parsed.consumed);
    }
  }
  out.left = pending.size();
  return out;
}

using Command = std::vector<std::string>;

Parsed<Command> parse_requests(std::string_view stream, std::size_t piece) {
  return parse_all<Command>(stream, piece, weir::resp::RequestParser{}, [](const auto& request) {
    WEIR_ASSERT(request.args.size() <= weir::resp::kArgsMax);
    return Command(request.args.begin(), request.args.end());
  });
}

Parsed<weir::resp::Value> parse_replies(std::string_view stream, std::size_t piece) {
  return parse_all<weir::resp::Value>(stream, piece, weir::resp::ReplyParser{},
                                      [](auto& reply) { return std::move(reply.value); });
}

void write_back(const Parsed<Command>& requests) {
  std::string out;
  weir::resp::Writer writer(out);
  writer.error("ERR " + requests.reason);
  WEIR_ASSERT(out.find('\n') == out.size() - 1);
  for (const auto& command : requests.items) {
    if (command.empty()) continue;
    out.clear();
    weir::resp::append_command(out, std::vector<std::string_view>(command.begin(), command.end()));
    const auto again = parse_requests(out, out.size());
    WEIR_ASSERT(again.reason.empty() && again.items.size() == 1 && again.items.front() == command);
  }
}

}  // namespace

void fuzz(std::string_view stream) {
  if (stream.size() < 2) return;
  const std::size_t piece = take_byte(stream) % 16 + 1;
  const auto whole = parse_requests(stream, stream.size());
  WEIR_ASSERT(whole == parse_requests(stream, piece));
  WEIR_ASSERT(parse_replies(stream, stream.size()) == parse_replies(stream, piece));
  write_back(whole);
}
