// A request's attributes as flags: `--user 42 --path /api/search`. For the commands that need a request.
//
// The flags own the texts and must outlive what is built from them. One thread. Tested by tests/server/policy.sh and
// commands.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "weir/request.h"
#include "weir/result.h"

namespace weir {

class RequestFlags {
 public:
  void add(CLI::App& app);

  // The request, with views of the flags; an error names the malformed flag.
  Result<Request> request();
  // The members of the JSON object that a weir server accepts, without the braces: `"user":"42"`. Empty if no flag
  // was given.
  Result<std::string> json_members();

 private:
  std::string user_, api_key_, ip_, tenant_, plan_, method_, host_, path_;
  std::vector<std::string> headers_, entries_;
  std::int64_t cost_ = 1;
  std::vector<Attribute> header_fields_, entry_fields_;
};

}  // namespace weir
