// `weir manual`: the man pages in roff. weir(1) comes from the tree of commands, weir.yaml(5) from the parser's tables,
// so they have exactly the options that exist.
//
// Exit codes: 0 success, 2 invalid command line. One thread. Tested by tests/server/manual.sh.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/command_tree.h"
#include "weir/policy.h"

namespace weir::cli {
namespace {

struct Escape {
  char character;
  const char* text;
};
constexpr Escape kEscapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                               {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};

// Escapes text, so that roff prints it unchanged.
std::string plain(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    const auto* const escape = std::ranges::find(kEscapes, c, &Escape::character);
    out += escape == std::end(kEscapes) ? std::string(1, c) : escape->text;
    is_line_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string slanted(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string head(std::string_view name, int section, std::string_view book, std::string_view about) {
  std::string title(name);
  std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return ".TH " + title + " " + std::to_string(section) + " \"\" \"weir " WEIR_VERSION "\" \"" + std::string(book) +
         "\"\n.SH NAME\n" + std::string(name) + " \\- " + std::string(about) + "\n";
}

std::string block(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return ".PP\n.EX\n" + plain(text) + "\n.EE\n";
}

std::string item(const std::string& term, std::string_view about) {
  return ".TP\n" + term + "\n" + plain(about) + "\n";
}

std::string option_term(const CLI::Option& option) {
  std::string term;
  if (option.get_positional()) {
    term = slanted(option.get_name(true));
  } else {
    for (const std::string& name : names_of(option)) term += (term.empty() ? "" : ", ") + bold(name);
    if (takes_value(option)) term += " " + slanted(value_name(option));
  }
  return term;
}

std::string option_about(const CLI::Option& option) {
  std::string about = option.get_description();
  if (!about.empty() && !about.ends_with('.')) about += '.';
  if (!option.get_default_str().empty()) about += " The default is " + option.get_default_str() + ".";
  return about;
}

std::string options_text(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : options_of(command)) out += item(option_term(*option), option_about(*option));
  return out;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string command_text(const CLI::App& command) {
  std::string out = ".SS " + plain(full_name(command)) + "\n" + plain(command.get_description()) + ".\n";
  if (const std::string examples = command.get_footer(); !examples.empty()) out += block(examples);
  out += options_text(command);
  for (const CLI::App* below : commands_of(command)) out += command_text(*below);
  return out;
}

constexpr const char* kSettings =
    "A file can set the options of\n.BR \"weir serve\" :\n.B \\-\\-settings\n.IR FILE .\n"
    "Each line sets one option, named without the dashes. The command line takes precedence.\n";
constexpr const char* kSettingsExample =
    "# /etc/weir/weir.conf\n"
    "http = \"0.0.0.0:8080\"\n"
    "config = /etc/weir/weir.yaml\n"
    "grpc = off\n"
    "force = false\n";

constexpr const char* kSignals =
    ".SH SIGNALS\n"
    ".TP\n.B SIGTERM\nAnswers the requests in flight, then stops. SIGINT does so without\n.BR \\-\\-drain\\-delay .\n"
    ".TP\n.B SIGHUP\nReloads the rules and the certificate. An invalid file changes nothing.\n"
    ".TP\n.B SIGUSR2\nUpgrade: starts the program again, which takes over all sockets. No connection is refused. "
    "Requires\n.BR \\-\\-state .\n";

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nSuccess.\n"
    ".TP\n.B 1\nFailure; the reason is on the standard error. "
    "With\n.B weir doctor\nand\n.BR \"weir nodes\" ,\nalso a problem in the report.\n"
    ".TP\n.B 2\nInvalid command line.\n"
    ".TP\n.B 3\nThe request is denied; only\n.BR \"weir check\" .\n";

constexpr const char* kFiles =
    ".SH FILES\n"
    ".TP\n.I /etc/weir/weir.yaml\nConfig of the service: its rules.\n"
    ".TP\n.I /etc/weir/weir.conf\nSettings of the service: the options of\n.BR \"weir serve\" .\n"
    ".TP\n.I /var/lib/weir/weir.state\nState file: what was used. It survives restarts and crashes of the server.\n";

// The sections of the config's page, in order.
struct Section {
  PolicyKey::Place place;
  const char* title;
  const char* about;
};
constexpr Section kPlaces[] = {
    {PolicyKey::Place::config, "TOP LEVEL", "The keys of the file. Without\n.BR import ,\n.B rules\nis required."},
    {PolicyKey::Place::rule, "RULES",
     "The keys of each rule. It has a\n.B name\nand either\n.B limit\nor\n.BR limits ."},
    {PolicyKey::Place::match, "MATCH", "The requests to which a rule applies. All keys that are given must match."},
    {PolicyKey::Place::answers, "ANSWERS", "What clients receive, under the key\n.BR answers ."},
    {PolicyKey::Place::plans, "PLANS", "The limits of each plan, under the key\n.BR plans ."},
};

constexpr const char* kConfigExample =
    "trusted_proxies: [10.0.0.0/8]\n"
    "skip: [/health]\n"
    "rules:\n"
    "  - {name: address, per: ip, limit: 600/minute, algorithm: fixed_window}\n"
    "  - {name: login, match: {path: /api/login, method: POST}, per: ip, limit: 5/5min, algorithm: sliding_log}\n"
    "  - {name: rest, match: otherwise, per: identity, limit: 1000/minute}\n";

std::string program_manual(const CLI::App& program) {
  std::string out = head("weir", 1, "User Commands", "rate limiter");
  out += ".SH SYNOPSIS\n.B weir\n.I COMMAND\n[options]\n.SH DESCRIPTION\n";
  out +=
      "Weir allows or denies requests, by limits that a request contains or by the rules of a config (see\n"
      ".BR weir.yaml (5)).\nClients use HTTP, Envoy's gRPC rate limit service, or any Redis client. "
      "Weir charges all limits of a request together or none.\n";
  out += block(program.get_footer()) + ".SH OPTIONS\n" + options_text(program) + ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(program)) out += command_text(*command);
  out += std::string(".SH SETTINGS FILE\n") + kSettings + block(kSettingsExample);
  out += std::string(kSignals) + kExitStatus + kFiles + ".SH SEE ALSO\n.BR weir.yaml (5)\n";
  return out;
}

std::string config_manual() {
  std::string out = head("weir.yaml", 5, "File Formats", "config of weir: rate limit rules");
  out +=
      ".SH DESCRIPTION\nThe file is YAML or JSON. It contains the rules for requests. Weir charges all rules that "
      "apply to a request "
      "together or none.\n.B weir validate\n.I FILE\nlists all errors with line and column.\n.B weir schema\nprints a "
      "JSON Schema for editors.\n";
  out += block(kConfigExample);
  for (const Section& place : kPlaces) {
    out += std::string(".SH ") + place.title + "\n" + place.about + "\n";
    for (const PolicyKey& key : policy_keys()) {
      if (key.place == place.place) out += item(bold(key.name), key.about);
    }
  }
  return out + ".SH SEE ALSO\n.BR weir (1)\n";
}

class ManualCommand {
 public:
  explicit ManualCommand(CLI::App& app) : program_(*app.get_parent()) {
    app.add_option("PAGE", page_, "weir: the program; weir.yaml: the format of a config")
        ->check(CLI::IsMember({"weir", "weir.yaml"}))
        ->capture_default_str();
  }
  Result<int> run() const {
    std::fputs((page_ == "weir" ? program_manual(program_) : config_manual()).c_str(), stdout);
    return 0;
  }

 private:
  const CLI::App& program_;
  std::string page_ = "weir";
};

}  // namespace

const Command kManualCommand{
    "manual", "Print a man page", declare<ManualCommand>,
    "  weir manual | man -l -                  show weir(1); with a package installed: man weir\n"
    "  weir manual weir.yaml | man -l -        show weir.yaml(5), the format of a config\n"
    "\n"};

}  // namespace weir::cli
