// Writes the man pages. See manual.h.
#include "command/manual.h"

#include <algorithm>

#include "command/command_tree.h"
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
    "What stands behind\n.B weir serve\ncan stand in a file, too, which\n.B \\-\\-settings\n.I FILE\nnames: an option "
    "in "
    "each line, by its name without the dashes. What the command line says goes before it.\n";
constexpr const char* kSettingsExample =
    "# /etc/weir/weir.conf\n"
    "http = \"0.0.0.0:8080\"\n"
    "config = /etc/weir/weir.yaml\n"
    "grpc = off\n"
    "force = false\n";

constexpr const char* kSignals =
    ".SH SIGNALS\n"
    ".TP\n.B SIGTERM\nStops: what was asked is answered first. So does SIGINT.\n"
    ".TP\n.B SIGHUP\nReads the rules and the certificate again. A bad file changes nothing.\n"
    ".TP\n.B SIGUSR2\nStarts the program anew, which takes over all sockets: an upgrade that refuses nobody.\n";

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nIt was done.\n"
    ".TP\n.B 1\nIt could not be done; why not stands on the standard error.\n"
    ".TP\n.B 2\nThe command line was not understood.\n";

constexpr const char* kFiles =
    ".SH FILES\n"
    ".TP\n.I /etc/weir/weir.yaml\nThe rules of the service.\n"
    ".TP\n.I /etc/weir/weir.conf\nIts settings: the options of\n.BR \"weir serve\" .\n"
    ".TP\n.I /var/lib/weir/weir.state\nWhat was spent. It survives any end of the server.\n";

// The sections of the config's page, in order.
struct Section {
  PolicyKey::Place place;
  const char* title;
  const char* about;
};
constexpr Section kPlaces[] = {
    {PolicyKey::Place::config, "THE WHOLE", "The keys of the file itself. Only\n.B rules\nis needed."},
    {PolicyKey::Place::rule, "A RULE",
     "The keys of each rule. It has a\n.B name\nand either\n.B limit\nor\n.BR limits ."},
    {PolicyKey::Place::match, "MATCH", "Which requests a rule is about. All keys that are given must hold."},
    {PolicyKey::Place::answers, "ANSWERS", "What clients are told, under the key\n.BR answers ."},
    {PolicyKey::Place::plans, "PLANS", "What each plan entitles to, under the key\n.BR plans ."},
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
  out +=
      "weir \\- rate limiter: may this request pass?\n.SH SYNOPSIS\n.B weir\n.I COMMAND\n[options]\n.SH DESCRIPTION\n";
  out +=
      "Weir decides whether a request may pass, by limits that the request brings along or by the rules of a config "
      "(see\n.BR weir.yaml (5)).\nIt is asked over HTTP, over gRPC as Envoy does it, and by any Redis client. All "
      "limits of a request are charged together or not at all.\n";
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
  out += "weir.yaml \\- the rules of weir: who may do how much of what\n.SH DESCRIPTION\n";
  out +=
      "The file is YAML, or JSON, which is read the same way. It names the rules that a request is held to; every "
      "rule that applies is charged, all together or none.\n.B weir validate\n.I FILE\ntells every error at once, with "
      "its place;\n.B weir schema\nprints a JSON Schema for editors.\n";
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
