// Fuzzes the answers that the load generator reads, in all three protocols: the counts do not depend on how the bytes
// are cut into pieces.
//
// The first byte of an input sets the protocol and the size of the pieces. The rest is what the server sends. No answer
// may count twice, and none without a request.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "load_generator/exchange.h"

namespace {

using namespace weir::load_generator;

constexpr std::size_t kAsked = 64;

const Template& request() {
  static const Template made = resp_template("PING");
  return made;
}
const GrpcTemplate& call() {
  static const GrpcTemplate made{"h:1", rls_template({})};
  return made;
}

struct Counted {
  std::vector<std::uint64_t> answered;
  std::uint64_t denied = 0, errors = 0;
  std::string first_error, said, reason;
  friend bool operator==(const Counted&, const Counted&) = default;
};

std::unique_ptr<Exchange> exchange_of(unsigned protocol) {
  if (protocol == 0) return make_resp_exchange(request());
  return protocol == 1 ? make_http_exchange(request()) : make_grpc_exchange(call());
}

Counted read_all(unsigned protocol, std::string_view stream, std::size_t piece) {
  const auto exchange = exchange_of(protocol);
  Keys keys({.count = 10});
  Answers answers;
  Counted counted;
  std::string asked;
  for (std::size_t i = 0; i < kAsked; ++i) exchange->ask(asked, keys);
  for (std::size_t at = 0; at < stream.size() && counted.reason.empty(); at += piece) {
    if (const auto read = exchange->read(stream.substr(at, piece), answers, counted.said); !read) {
      WEIR_ASSERT(!read.error().message.empty());
      counted.reason = read.error().message;
    }
  }
  counted.answered = answers.answered;
  counted.denied = answers.denied;
  counted.errors = answers.errors;
  counted.first_error = answers.first_error;
  WEIR_ASSERT(counted.first_error.size() <= kErrorTextMax);
  return counted;
}

}  // namespace

void fuzz(std::string_view stream) {
  if (stream.empty()) return;
  const unsigned how = take_byte(stream), protocol = how % 3;
  const std::size_t piece = how / 3 + 1;
  const Counted whole = read_all(protocol, stream, stream.size() + 1);
  WEIR_ASSERT(whole == read_all(protocol, stream, piece));
  WEIR_ASSERT(whole == read_all(protocol, stream, 1));
  const std::set<std::uint64_t> once(whole.answered.begin(), whole.answered.end());
  if (protocol < 2) WEIR_ASSERT(once.size() == whole.answered.size());
  if (protocol == 2 && !once.empty()) WEIR_ASSERT(*once.rbegin() < kAsked && whole.answered.size() <= kAsked);
}
