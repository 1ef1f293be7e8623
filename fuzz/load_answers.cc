// Bytes as a server under load might send them: whole and split input must be counted alike, in all three protocols.
//
// The first byte says how large the pieces are and which protocol it is; the rest is the stream. No answer may be
// counted twice, nor one to what was not asked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "load_generator/exchange.h"

namespace {

using namespace weir::load;

constexpr std::size_t kAsked = 64;

void require(bool condition) {
  if (!condition) std::abort();
}

const Template& request() {
  static const Template made = resp_template("PING");
  return made;
}
const GrpcTemplate& call() {
  static const GrpcTemplate made{"h:1", rls_template({})};
  return made;
}

struct Heard {
  std::vector<std::uint64_t> answered;
  std::uint64_t denied = 0, errors = 0;
  std::string first_error, said, reason;
  friend bool operator==(const Heard&, const Heard&) = default;
};

std::unique_ptr<Exchange> exchange_of(unsigned protocol) {
  if (protocol == 0) return make_resp_exchange(request());
  return protocol == 1 ? make_http_exchange(request()) : make_grpc_exchange(call());
}

Heard hear(unsigned protocol, std::string_view stream, std::size_t piece) {
  const auto exchange = exchange_of(protocol);
  Keys keys({.count = 10});
  Answers answers;
  Heard heard;
  std::string asked;
  for (std::size_t i = 0; i < kAsked; ++i) exchange->ask(asked, keys);
  for (std::size_t at = 0; at < stream.size() && heard.reason.empty(); at += piece) {
    if (const auto read = exchange->read(stream.substr(at, piece), answers, heard.said); !read) {
      require(!read.error().message.empty());
      heard.reason = read.error().message;
    }
  }
  heard.answered = answers.answered;
  heard.denied = answers.denied;
  heard.errors = answers.errors;
  heard.first_error = answers.first_error;
  require(heard.first_error.size() <= kErrorTextMax);
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned protocol = data[0] % 3U;
  const std::size_t piece = data[0] / 3U + 1;
  const Heard whole = hear(protocol, stream, stream.size() + 1);
  require(whole == hear(protocol, stream, piece));
  require(whole == hear(protocol, stream, 1));
  const std::set<std::uint64_t> once(whole.answered.begin(), whole.answered.end());
  if (protocol < 2) require(once.size() == whole.answered.size());
  if (protocol == 2 && !once.empty()) require(*once.rbegin() < kAsked && whole.answered.size() <= kAsked);
  return 0;
}
