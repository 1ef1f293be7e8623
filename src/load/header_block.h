// HPACK (RFC 7541), as much of it as a gRPC client needs that knows what it will say and what it will be told.
//
// Requests are the same each time: the first puts its fields into the peer's table, those after it name them by their
// numbers, as Envoy and grpc do. What comes back is searched for one field only. We announce a table of size 0, so that
// nothing in it refers to what came before. Pure; any thread. Tested by header_block_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::load {

// The fields of a gRPC call, of which these two differ from server to server.
struct CallFields {
  std::string path;
  std::string authority;
};

// The first on a connection, whose fields the peer shall remember.
std::string first_header_block(const CallFields& fields);
// All that follow it.
std::string next_header_block();
// Every one, for a peer that remembers nothing.
std::string plain_header_block(const CallFields& fields);

// grpc_status()
//
// The value of `grpc-status` in the trailers, Huffman-coded or not; empty if there is none, as in the header that comes
// before an answer.
Result<std::string> grpc_status(std::string_view block);

}  // namespace weir::load
