// Writes the man pages. See manual.h.
#include "cli/manual.h"

#include <algorithm>

#include "cli/command_tree.h"
#include "weir/policy.h"

namespace weir {
namespace {

// Escapes text, so that roff prints it unchanged.
std::string plain(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out += c;
    }
    is_line_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string slanted(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string head(std::string_view name, int section, std::string_view version, std::string_view book) {
  std::string title(name);
  std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return ".TH " + title + " " + std::to_string(section) + " \"\" \"weir " + std::string(version) + "\" \"" +
         std::string(book) + "\"\n.SH NAME\n";
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
    for (const std::string& name : option.get_snames()) term += bold("-" + name) + ", ";
    for (const std::string& name : option.get_lnames()) term += bold("--" + name) + ", ";
    term.resize(term.size() - 2);
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

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string command_text(const CLI::App& command, const ExamplesOf& examples_of) {
  std::string out = ".SS " + plain(full_name(command)) + "\n" + plain(command.get_description()) + ".\n";
  if (const std::string_view examples = examples_of(command.get_name()); !examples.empty()) out += block(examples);
  for (const CLI::Option* option : options_of(command)) out += item(option_term(*option), option_about(*option));
  for (const CLI::App* below : commands_of(command)) out += command_text(*below, examples_of);
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
    ".TP\n.B SIGTERM\nAnswers the requests in flight, then stops the server. SIGINT does the same.\n"
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
    {PolicyKey::Place::config, "TOP LEVEL", "The keys of the file itself. Only\n.B rules\nis required."},
    {PolicyKey::Place::rule, "RULES",
     "The keys of each rule. It has a\n.B name\nand either\n.B limit\nor\n.BR limits ."},
    {PolicyKey::Place::match, "MATCH",
     "The requests to which a rule applies. They must match all keys that are given."},
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

}  // namespace

std::string program_manual(const CLI::App& program, const ExamplesOf& examples_of, std::string_view version) {
  std::string out = head("weir", 1, version, "User Commands");
  out += "weir \\- rate limiter\n.SH SYNOPSIS\n.B weir\n.I COMMAND\n[options]\n.SH DESCRIPTION\n";
  out +=
      "Weir allows or denies requests, by limits that a request contains or by the rules of a config (see\n"
      ".BR weir.yaml (5)).\nClients use HTTP, Envoy's gRPC rate limit service, or any Redis client. "
      "Weir charges all limits of a request together or none.\n";
  out += block(examples_of(""));
  out += ".SH OPTIONS\n";
  for (const CLI::Option* option : options_of(program)) out += item(option_term(*option), option_about(*option));
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(program)) out += command_text(*command, examples_of);
  out += std::string(".SH SETTINGS FILE\n") + kSettings + block(kSettingsExample);
  out += std::string(kSignals) + kExitStatus + kFiles + ".SH SEE ALSO\n.BR weir.yaml (5)\n";
  return out;
}

std::string config_manual(std::string_view version) {
  std::string out = head("weir.yaml", 5, version, "File Formats");
  out += "weir.yaml \\- config of weir: rate limit rules\n.SH DESCRIPTION\n";
  out +=
      "The file is YAML or JSON. It contains the rules for requests. Weir charges all rules that apply to a request "
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

}  // namespace weir
