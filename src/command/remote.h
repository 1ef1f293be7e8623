// A running server, as the commands talk to it: one HTTP call at a time, with a time-out; in TLS if the address says
// https://.
//
// Blocking; one thread. Tested by tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

#include "command/wire.h"
#include "protocol/json_value.h"
#include "weir/result.h"

namespace weir {

struct RemoteAnswer {
  int status = 0;
  std::string body{};
};

class Remote {
 public:
  // `option` is the flag that says where the server is: `--admin`. Each step of a call may take so long.
  Remote(std::string_view option, std::string address, int patience_ms = 10'000)
      : option_(option), address_(std::move(address)), patience_ms_(patience_ms) {}

  // The flags for it; `--token-file` where the port may want a token.
  void add(CLI::App& app, const char* about);
  void add_token(CLI::App& app);
  // A subcommand that asks an admin port and tells its answer with print(): with both flags, and `--json`.
  CLI::App* add_subcommand(CLI::App& app, const char* name, const char* about);

  // Any answer that is HTTP; an error if there is none, with what to do.
  Result<RemoteAnswer> call(std::string_view method, std::string_view target, std::string_view body = {}) const;
  // An answer of JSON with a status of 200; else an error with what the server said.
  Result<JsonValue> get(std::string_view target) const;

  // Prints what came of a call: the body as it is with `--json`, else what `words` makes of it. An exit code: 1 if a
  // body was printed that comes with another status than 200.
  struct Call {
    std::string_view method;
    std::string target;
    std::string body{};
    std::function<int(const JsonValue&)> code{};  // what an answer that is no error ends with; nothing: 0
  };
  Result<int> print(const Call& call, const std::function<std::string(const JsonValue&)>& words) const;

  const std::string& address() const { return address_; }
  // Whether it is reached by loopback or a unix socket. A tunnel looks like that, too.
  bool is_on_this_machine() const;

 private:
  Result<RemoteAnswer> talk(const load::Target& target, const std::string& request) const;
  Result<JsonValue> json(std::string_view method, std::string_view target, std::string_view body) const;

  std::string option_;
  std::string address_;
  int patience_ms_;
  std::string token_file_{};
  TlsTrust trust_{};
  bool json_ = false;
};

// What the server says of a change that not all servers of its fleet have: a line, or nothing.
std::string reach_of(const JsonValue& answer);
// Of an answer with numbers that one server has counted: a line that says so where it is one of several; else nothing.
std::string fleet_note(const JsonValue& answer);

// Of a query: everything but letters, digits and `-._~` as %XX.
std::string in_query(std::string_view text);

}  // namespace weir
