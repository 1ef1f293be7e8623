// One connection's side of a protocol: writes requests, and tells which of them the bytes that came back answer.
//
// No sockets and no time: tests feed it byte by byte. Requests of a connection are numbered from 0 as they are written;
// an answer names the number of its request, since gRPC answers out of order. One thread.
// Tested by resp_exchange_test.cc, http_exchange_test.cc and grpc_exchange_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load/keys.h"
#include "load/template.h"
#include "weir/result.h"

namespace weir::load {

inline constexpr std::size_t kErrorTextMax = 200;

// What came back. The caller looks at `answered` and empties it; the rest adds up.
struct Answers {
  std::vector<std::uint64_t> answered;  // numbers of requests
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;  // answers that are neither yes nor no
  std::string first_error;

  void add_error(std::string_view text) {
    if (errors++ == 0) first_error = text.substr(0, kErrorTextMax);
  }
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // What a connection begins with.
  virtual void begin(std::string&) {}
  // Whether the peer has room for another request now.
  virtual bool may_ask() const { return true; }
  virtual void ask(std::string& out, Keys& keys) = 0;

  // read()
  //
  // All bytes are taken. What the protocol wants said in return is appended to `out`. A failure ends the connection.
  virtual Result<void> read(std::string_view bytes, Answers& answers, std::string& out) = 0;
};

// The template must outlive it.
std::unique_ptr<Exchange> make_resp_exchange(const Template& command);
std::unique_ptr<Exchange> make_http_exchange(const Template& request);

// What a gRPC call is made of; see grpc_exchange.cc.
struct RlsRequest {
  std::string domain = "bench";
  std::vector<std::pair<std::string, std::string>> entries = {{"user", "{key}"}};
};
struct GrpcTemplate {
  std::string authority;
  Template message;  // with its five bytes of length
};
Template rls_template(const RlsRequest& request);
std::unique_ptr<Exchange> make_grpc_exchange(const GrpcTemplate& call);

}  // namespace weir::load
