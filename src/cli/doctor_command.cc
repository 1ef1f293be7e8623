// `weir doctor`: examines a running server, and reports problems and fixes.
//
// Exit codes: 0 no failures, 1 a failure or no answer from the server, with --strict also warnings. One thread.
// Tested by tests/server/doctor.sh.
#include <sys/timex.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/json_text.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/remote.h"
#include "cli/table_text.h"
#include "weir/clock.h"

namespace weir::cli {
namespace {

bool is_clock_kept() {
  timex clock{};
  return adjtimex(&clock) != TIME_ERROR;
}

// The path as the server sees it: a relative path starts at the server's working folder.
std::string absolute(const std::string& file, const std::string& pid) {
  if (file.starts_with('/')) return file;
  char folder[4096];
  const ssize_t size = readlink(("/proc/" + pid + "/cwd").c_str(), folder, sizeof folder);
  return size < 0 ? std::string() : std::string(folder, static_cast<std::size_t>(size)) + "/" + file;
}

// The type of the file system with the longest mount point that is a prefix of the path, after resolving links.
std::string filesystem_of(const std::string& given) {
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(given, error).string();
  if (error || given.empty()) return {};
  std::ifstream mounts("/proc/self/mounts");
  std::string line, found;
  std::size_t longest = 0;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string device, point, kind;
    words >> device >> point >> kind;
    const bool is_prefix =
        path.starts_with(point) && (point == "/" || path.size() == point.size() || path[point.size()] == '/');
    if (!is_prefix || point.size() < longest) continue;
    longest = point.size();
    found = kind;
  }
  return found;
}

// By level, for people and for programs.
constexpr std::array kWords = {"ok", "warn", "FAIL"}, kJsonWords = {"ok", "warn", "fail"};

void print_json(const std::vector<Finding>& findings) {
  std::string out = "{\"findings\":[";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    out += i > 0 ? ",\n{\"level\":\"" : "\n{\"level\":\"";
    out.append(kJsonWords.at(static_cast<std::size_t>(findings[i].level))).append("\",\"what\":");
    base::append_json_text(out, findings[i].what);
    base::append_json_text(out.append(",\"advice\":"), findings[i].advice);
    out += '}';
  }
  std::printf("%s]}\n", out.c_str());
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const std::string what = printable_lines(finding.what, "      "),
                      advice = printable_lines(finding.advice, "         ");
    std::printf("%-5s %s\n", kWords.at(static_cast<std::size_t>(finding.level)), what.c_str());
    if (!advice.empty()) std::printf("      -> %s\n", advice.c_str());
  }
}

class DoctorCommand {
 public:
  explicit DoctorCommand(CLI::App& app);

  Result<int> run();

 private:
  Result<Patient> ask() const;
  void ask_policy(Patient& patient) const;

  Remote server_{"--admin", "127.0.0.1:8082"};
  bool strict_ = false, json_ = false;
};

DoctorCommand::DoctorCommand(CLI::App& app) {
  app.add_flag("--strict", strict_, "Exit with 1 on warnings, too");
  app.add_flag("--json", json_, "Print one JSON object");
  server_.add(app, "Admin API address of the server");
  server_.add_token(app);
}

void DoctorCommand::ask_policy(Patient& patient) const {
  protocol::JsonValue config;
  if (const auto got = server_.get({{"/admin/v1/config", &config}}); !got) {
    patient.policy_problem = got.error().message;
    return;
  }
  const std::string& text = config.at("text").text;
  if (text.empty()) return;  // no rules
  if (auto policy = parse_policy(text, "config")) {
    patient.policy = *std::move(policy);
  } else {
    patient.policy_problem = policy.error().message;
  }
}

Result<Patient> DoctorCommand::ask() const {
  Patient patient;
  const auto got = server_.get({{"/admin/v1/status", &patient.status},
                                {"/admin/v1/rules", &patient.rules},
                                {"/admin/v1/nodes", &patient.nodes}});
  if (!got) return fail(got.error());
  if (auto metrics = server_.call("GET", "/metrics")) patient.metrics = std::move(metrics->body);
  ask_policy(patient);
  patient.now = make_system_clock()->now();
  patient.version = WEIR_VERSION;
  patient.is_here = server_.is_on_this_machine();
  if (!patient.is_here) return patient;
  patient.is_clock_kept = is_clock_kept();
  const std::string file = patient.status.at("state").text;
  if (!file.empty()) patient.filesystem = filesystem_of(absolute(file, patient.status.at("pid").text));
  return patient;
}

Result<int> DoctorCommand::run() {
  const auto patient = ask();
  if (!patient) return fail(patient.error());
  const auto findings = examine(*patient);
  if (json_) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const Finding::Level least = strict_ ? Finding::Level::warning : Finding::Level::failure;
  return std::ranges::any_of(findings, [least](const Finding& one) { return one.level >= least; }) ? kCouldNot : 0;
}

}  // namespace

const Command kDoctorCommand{"doctor", "Check a running server: what is wrong, and how to fix it",
                             declare<DoctorCommand>};

}  // namespace weir::cli
