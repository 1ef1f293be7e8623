// A client of a running server: one HTTP call at a time, with a time-out, over TLS if the address begins with
// https://.
//
// Blocking; one thread. Tested by tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "net/http_call.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "weir/result.h"

namespace weir::cli {

class Remote {
 public:
  // `option` is the flag with the server's address: `--admin`. `timeout` bounds each step of a call.
  Remote(std::string_view option, std::string address, std::chrono::seconds timeout = std::chrono::seconds{10})
      : option_(option), address_(std::move(address)), timeout_(timeout) {}

  // Declares the flags; `--token-file` is for ports that may require a token.
  void add(CLI::App& app, const char* about);
  void add_token(CLI::App& app);
  // For a command that calls the admin API and prints the answer with print(): all flags, and `--json`.
  void add_admin(CLI::App& app);
  // The same for a subcommand of `app`. The command line must name one of them.
  CLI::App* add_subcommand(CLI::App& app, const char* name, const char* about, Run run);
  // Runs the subcommand that was given.
  Result<int> run() const;

  // Returns any HTTP answer; without one, an error that says what to do.
  Result<net::HttpAnswer> call(std::string_view method, std::string_view target, std::string_view body = {}) const;
  // Fills the JSON answers with status 200, or returns the first error, with the server's message.
  Result<void> get(std::initializer_list<std::pair<std::string_view, protocol::JsonValue*>> answers) const;

  // Prints the answer of a call: the body as it is with `--json`, otherwise the text from `words`. Returns an exit
  // code: 1 if the status of the answer is not 200.
  struct Call {
    std::string_view method;
    std::string target;
    std::string body{};
    std::function<int(const protocol::JsonValue&)> code{};  // the exit code of a successful answer; nothing: 0
  };
  Result<int> print(const Call& call, const std::function<std::string(const protocol::JsonValue&)>& words) const;

  const std::string& address() const { return address_; }
  // Whether the address is loopback or a unix socket. A tunnel looks the same.
  bool is_on_this_machine() const;

 private:
  Result<net::HttpAnswer> talk(const base::Endpoint& server, std::string request) const;
  Result<protocol::JsonValue> json(std::string_view method, std::string_view target, std::string_view body) const;

  std::string option_;
  std::string address_;
  std::chrono::seconds timeout_;
  std::string token_file_{};
  base::TlsSettings tls_{.has_user = true};
  bool json_ = false;
  std::vector<std::pair<const CLI::App*, Run>> subcommands_{};
};

// The name and the value of a JSON member.
using JsonText = std::pair<std::string_view, std::string_view>;
using WriteMembers = std::function<void(protocol::JsonWriter&)>;
// Writes texts, except empty ones.
void write_texts(protocol::JsonWriter& json, std::initializer_list<JsonText> texts);
// A JSON object with these texts, then what `further` writes.
std::string json_body(std::initializer_list<JsonText> texts, const WriteMembers& further = {});

// The server's note about a change that not all servers of its fleet have yet: a line, or nothing.
std::string reach_of(const protocol::JsonValue& answer);
// For an answer with the counts of one server of a fleet: a line that says so; otherwise nothing.
std::string fleet_note(const protocol::JsonValue& answer);

// Escapes a query value: everything but letters, digits and `-._~` as %XX.
std::string in_query(std::string_view text);

}  // namespace weir::cli
