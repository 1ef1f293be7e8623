// A subset of HPACK (RFC 7541), for a gRPC client with fixed requests.
//
// All requests have the same fields. The first puts them into the peer's table, and later ones refer to them by
// index, as Envoy and grpc do. In answers it looks for one field only. The client announces a table of size 0, so
// that answers never refer to earlier ones. Pure; any thread. Tested by header_block_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::load_generator {

// The fields of a gRPC call that differ between servers.
struct CallFields {
  std::string path;
  std::string authority;
};

// The first block on a connection, which puts its fields into the peer's table.
std::string first_header_block(const CallFields& fields);
// The block of all later calls.
std::string next_header_block();
// The block of every call, for a peer without a table.
std::string plain_header_block(const CallFields& fields);

// grpc_status()
//
// The value of `grpc-status` in trailers, Huffman-coded or not; empty if there is none, as in the headers before an
// answer.
Result<std::string> grpc_status(std::string_view block);

}  // namespace weir::load_generator
