// Bytes as a RESP peer might send them: whole and split input must be understood alike, by both parsers.
//
// The first byte says how large the pieces are; the rest is the stream, read once as requests and once as
// replies. What is written back must be one line for each error, whatever stands in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply.h"
#include "resp/request.h"
#include "resp/writer.h"

namespace {

using weir::resp::Status;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Heard {
  std::vector<std::vector<std::string>> commands;
  std::string reason;
  std::size_t left = 0;
  friend bool operator==(const Heard&, const Heard&) = default;
};

Heard hear_requests(std::string_view stream, std::size_t piece) {
  weir::resp::RequestParser parser;
  Heard heard;
  std::string pending;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    pending.append(stream.substr(at, piece));
    while (true) {
      const auto request = parser.parse(pending);
      if (request.status == Status::need_more) break;
      if (request.status == Status::bad) {
        require(!request.reason.empty());
        heard.reason = std::string(request.reason);
        return heard;
      }
      require(request.consumed > 0 && request.consumed <= pending.size());
      require(request.args.size() <= weir::resp::kArgsMax);
      heard.commands.emplace_back(request.args.begin(), request.args.end());
      pending.erase(0, request.consumed);
    }
  }
  heard.left = pending.size();
  return heard;
}

struct Replies {
  std::vector<weir::resp::Value> values;
  std::string reason;
  std::size_t left = 0;
  friend bool operator==(const Replies&, const Replies&) = default;
};

Replies hear_replies(std::string_view stream, std::size_t piece) {
  weir::resp::ReplyParser parser;
  Replies heard;
  std::string pending;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    pending.append(stream.substr(at, piece));
    while (!pending.empty()) {
      auto reply = parser.parse(pending);
      if (reply.status == Status::need_more) break;
      if (reply.status == Status::bad) {
        require(!reply.reason.empty());
        heard.reason = reply.reason;
        return heard;
      }
      require(reply.consumed > 0 && reply.consumed <= pending.size());
      heard.values.push_back(std::move(reply.value));
      pending.erase(0, reply.consumed);
    }
  }
  heard.left = pending.size();
  return heard;
}

void write_back(const Heard& heard) {
  std::string out;
  weir::resp::Writer writer(out);
  writer.error("ERR " + heard.reason);
  require(out.find('\n') == out.size() - 1);
  for (const auto& command : heard.commands) {
    if (command.empty()) continue;
    out.clear();
    weir::resp::append_command(out, std::vector<std::string_view>(command.begin(), command.end()));
    const Heard again = hear_requests(out, out.size());
    require(again.reason.empty() && again.commands.size() == 1 && again.commands.front() == command);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t piece = data[0] % 16 + 1;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Heard whole = hear_requests(stream, stream.size());
  require(whole == hear_requests(stream, piece));
  require(hear_replies(stream, stream.size()) == hear_replies(stream, piece));
  write_back(whole);
  return 0;
}
