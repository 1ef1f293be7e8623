// What is known of a request, as flags: `--user 42 --path /api/search`. For the commands that ask about one.
//
// The texts belong to the flags, which outlive what is made of them. One thread. Tested by tests/server/policy.sh and
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

  // Views of the flags; an error names the flag that is written otherwise.
  Result<Request> request();
  // As the members of a JSON object that a server of ours reads, without the braces: `"user":"42"`. Empty if no flag
  // was given.
  Result<std::string> json_members();

 private:
  std::string user_, api_key_, ip_, tenant_, plan_, method_, host_, path_;
  std::vector<std::string> headers_, entries_;
  std::int64_t cost_ = 1;
  std::vector<Attribute> header_fields_, entry_fields_;
};

}  // namespace weir
