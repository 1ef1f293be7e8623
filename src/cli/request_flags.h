// A request's attributes as flags: `--user 42 --path /api/search`. For the commands that need a request.
//
// The flags own the texts and must outlive what is built from them. One thread. Tested by tests/server/policy.sh and
// commands.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/request_fields.h"
#include "protocol/json_writer.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir::cli {

class RequestFlags {
 public:
  void add(CLI::App& app);
  // Without --cost, for a command that ignores or refuses a cost.
  void add_attributes(CLI::App& app);

  // The request, with views of the flags; an error names the malformed flag.
  Result<Request> request();

 private:
  std::array<std::string, base::kRequestFields.size()> texts_;  // of the fields with one value
  std::vector<std::string> headers_, entries_;
  std::int64_t cost_ = 1;
  std::vector<Attribute> header_fields_, entry_fields_;
};

// Writes a request as a weir server accepts it: `"user":"42"`. False if it has no attributes.
bool write_members(protocol::JsonWriter& json, const Request& request);

}  // namespace weir::cli
