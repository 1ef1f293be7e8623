// gRPC: ShouldRateLimit with one descriptor, by a rule. Frames, header block and protobuf are written by hand. See
// listener.h.
//
// An answer has whole seconds and what is left. When the quota changes, the rule of the same name is replaced.
#include <algorithm>
#include <map>
#include <utility>

#include "listener.h"
#include "server/grpc/grpc_session.h"
#include "server/loop/session_fixture.h"
#include "weir/gate.h"

namespace weir::test {
namespace {

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string frame(int type, int flags, std::uint32_t stream, const std::string& payload) {
  return big_endian(payload.size(), 3) + static_cast<char>(type) + static_cast<char>(flags) + big_endian(stream, 4) +
         payload;
}

// A field of a header block, never indexed, never compressed; the name and the value are short.
std::string field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

std::string header_block() {
  return field(":method", "POST") + field(":scheme", "http") +
         field(":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit") + field(":authority", "x") +
         field("content-type", "application/grpc") + field("te", "trailers");
}

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text.push_back(static_cast<char>(value | 128));
  text.push_back(static_cast<char>(value));
  return text;
}

std::string nested(int number, const std::string& message) {
  return static_cast<char>(number << 3 | 2) + varint(message.size()) + message;
}

// The domain d, one descriptor k=v with its own hits.
std::string request(std::int64_t cost) {
  const std::uint64_t hits =
      cost < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(cost) : static_cast<std::uint64_t>(cost);
  std::string descriptor = nested(1, nested(1, "k") + nested(2, "v")) + nested(3, "\x08" + varint(hits));
  if (cost < 0) descriptor += "\x20\x01";
  return nested(1, "d") + nested(2, descriptor);
}

// A message as its numbered fields; of one given twice, the last.
struct Message {
  std::map<std::uint64_t, std::uint64_t> numbers;
  std::map<std::uint64_t, std::string> texts;
};

Message read_message(std::string_view bytes) {
  Message message;
  const auto next = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (!bytes.empty()) {
    const std::uint64_t tag = next();
    if ((tag & 7) == 0) {
      message.numbers[tag >> 3] = next();
    } else {
      const std::size_t size = next();
      message.texts[tag >> 3] = bytes.substr(0, size);
      bytes.remove_prefix(std::min(size, bytes.size()));
    }
  }
  return message;
}

Micros to_second(Micros wait) { return Micros{(wait.count() + 999'999) / 1'000'000 * 1'000'000}; }

class GrpcListener final : public Listener {
 public:
  explicit GrpcListener(std::shared_ptr<const Clock> clock) : limiter_(options_of(std::move(clock))) {
    player_.feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") + frame(8, 0, 0, big_endian(1U << 30, 4)));
    player_.take();
  }

  std::string_view name() const override { return "gRPC"; }
  bool has(Algorithm algorithm) const override { return algorithm != Algorithm::concurrency; }

  void change(const Quota& quota) override {
    const auto policy =
        parse_policy("rules: [{name: r, match: {entry: {k: v}}, per: 'entry:k', limit: '" + weir::to_string(quota) +
                         "', algorithm: " + std::string(weir::to_string(quota.algorithm)) + "}]",
                     "the listener");
    error_ = policy ? "" : policy.error().message;
    if (!policy) return;
    if (const auto applied = gate_.apply(*policy, Force::yes); !applied) error_ = applied.error().message;
  }

  Result<Decision> check(std::int64_t cost) override {
    if (!error_.empty()) return fail(ErrorCode::invalid_argument, error_);
    const std::string message = request(cost);
    stream_ += 2;
    player_.feed(frame(1, 4, stream_, header_block()) +
                 frame(0, 1, stream_, std::string(1, '\0') + big_endian(message.size(), 4) + message));
    const std::string data = data_of(player_.take());
    if (data.size() < 5) return fail(ErrorCode::unavailable, "no message came back");
    Message status = read_message(read_message(data.substr(5)).texts[2]);
    return Decision{
        .allowed = status.numbers[1] == 1,
        .remaining = static_cast<std::int64_t>(status.numbers[3]),
        .reset_after = Micros{static_cast<std::int64_t>(read_message(status.texts[4]).numbers[1]) * 1'000'000}};
  }

  // A request of 0 hits asks whether one more hit would pass.
  Decision as_answered(const Decision& decision, std::int64_t cost) const override {
    const bool allowed = cost == 0 ? decision.remaining >= 1 : decision.allowed;
    const Micros least = allowed ? Micros{0} : Micros{1'000'000};
    return {.allowed = allowed,
            .remaining = std::min<std::int64_t>(decision.remaining, UINT32_MAX),
            .reset_after = std::max(least, to_second(decision.reset_after))};
  }

 private:
  static std::string data_of(std::string_view bytes) {
    std::string data;
    while (bytes.size() >= 9) {
      const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
      const std::size_t size = std::size_t{at(0)} << 16 | std::size_t{at(1)} << 8 | at(2);
      if (at(3) == 0) data.append(bytes.substr(9, size));
      bytes.remove_prefix(std::min(bytes.size(), 9 + size));
    }
    return data;
  }

  Limiter limiter_;
  weir::Gate gate_{limiter_};
  server::grpc::GrpcService service_{limiter_, &gate_};
  std::unique_ptr<server::loop::Session> session_ = server::grpc::make_grpc_session(service_);
  server::loop::SessionPlayer player_{*session_, limiter_};
  std::uint32_t stream_ = static_cast<std::uint32_t>(-1);
  std::string error_;
};

}  // namespace

std::unique_ptr<Listener> grpc_listener(std::shared_ptr<const Clock> clock) {
  return std::make_unique<GrpcListener>(std::move(clock));
}

}  // namespace weir::test
