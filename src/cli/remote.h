// A client of a running server: one HTTP call at a time, with a time-out, over TLS if the address begins with
// https://.
//
// Blocking; one thread. Tested by tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

#include "cli/wire.h"
#include "protocol/json_value.h"
#include "weir/result.h"

namespace weir {

struct RemoteAnswer {
  int status = 0;
  std::string body{};
};

class Remote {
 public:
  // `option` is the flag with the server's address: `--admin`. `patience_ms` is the time-out of each step of a call
  // but connecting.
  Remote(std::string_view option, std::string address, int patience_ms = 10'000)
      : option_(option), address_(std::move(address)), patience_ms_(patience_ms) {}

  // Declares the flags; `--token-file` is for ports that may require a token.
  void add(CLI::App& app, const char* about);
  void add_token(CLI::App& app);
  // A subcommand that calls the admin API and prints the answer with print(): with both flags, and `--json`.
  CLI::App* add_subcommand(CLI::App& app, const char* name, const char* about);

  // Returns any HTTP answer; without one, an error that says what to do.
  Result<RemoteAnswer> call(std::string_view method, std::string_view target, std::string_view body = {}) const;
  // Returns a JSON answer with status 200; otherwise an error with the server's message.
  Result<JsonValue> get(std::string_view target) const;

  // Prints the answer of a call: the body as it is with `--json`, otherwise the text from `words`. Returns an exit
  // code: 1 if the printed body has another status than 200.
  struct Call {
    std::string_view method;
    std::string target;
    std::string body{};
    std::function<int(const JsonValue&)> code{};  // the exit code of a successful answer; nothing: 0
  };
  Result<int> print(const Call& call, const std::function<std::string(const JsonValue&)>& words) const;

  const std::string& address() const { return address_; }
  // Whether the address is loopback or a unix socket. A tunnel looks the same.
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

// The server's note about a change that not all servers of its fleet have yet: a line, or nothing.
std::string reach_of(const JsonValue& answer);
// For an answer with the counts of one server of a fleet: a line that says so; otherwise nothing.
std::string fleet_note(const JsonValue& answer);

// Escapes a query value: everything but letters, digits and `-._~` as %XX.
std::string in_query(std::string_view text);

}  // namespace weir
