// The client side of a protocol on one connection: writes requests, and matches answers to them.
//
// No sockets and no time: tests feed it byte by byte. The requests of a connection are numbered from 0 in the order
// they are written. An answer names its request's number, since gRPC answers out of order. One thread. Tested by
// resp_exchange_test.cc, http_exchange_test.cc and grpc_exchange_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load_generator/keys.h"
#include "load_generator/template.h"
#include "weir/result.h"

namespace weir::load_generator {

inline constexpr std::size_t kErrorTextMax = 200;

// The results of reading. The caller clears `answered`; the others accumulate.
struct Answers {
  std::vector<std::uint64_t> answered;  // numbers of answered requests
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;  // answers that are neither allowed nor denied
  std::string first_error;

  void add_error(std::string_view text) {
    if (errors++ == 0) first_error = text.substr(0, kErrorTextMax);
  }
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Writes what a connection starts with.
  virtual void begin(std::string&) {}
  // Whether the peer accepts another request now.
  virtual bool may_ask() const { return true; }
  virtual void ask(std::string& out, Keys& keys) = 0;

  // read()
  //
  // Consumes all bytes. Appends to `out` what the protocol requires in return. A failure ends the connection.
  virtual Result<void> read(std::string_view bytes, Answers& answers, std::string& out) = 0;
};

// The template must outlive it.
std::unique_ptr<Exchange> make_resp_exchange(const Template& command);
std::unique_ptr<Exchange> make_http_exchange(const Template& request);

// The content of a gRPC call; see grpc_exchange.cc.
struct RlsRequest {
  std::string domain = "bench";
  std::vector<std::pair<std::string, std::string>> entries = {{"user", "{key}"}};
};
struct GrpcTemplate {
  std::string authority;
  Template message;  // with its 5-byte gRPC prefix
};
Template rls_template(const RlsRequest& request);
std::unique_ptr<Exchange> make_grpc_exchange(const GrpcTemplate& call);

}  // namespace weir::load_generator
