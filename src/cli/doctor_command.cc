// Gathers facts and prints findings. See doctor_command.h.
#include "cli/doctor_command.h"

#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/complain.h"
#include "cli/table_text.h"
#include "protocol/problem.h"
#include "weir/clock.h"

namespace weir {

const char* const kDoctorExamples =
    "  weir doctor                  the server on this machine: rules, trust, table, state, Redis, descriptors, clock\n"
    "  weir doctor --strict         exit with 1 on warnings, too: for a check after each deploy\n"
    "  weir doctor --json | jq      for scripts\n"
    "\n";

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
    const bool holds =
        path.starts_with(point) && (point == "/" || path.size() == point.size() || path[point.size()] == '/');
    if (!holds || point.size() < longest) continue;
    longest = point.size();
    found = kind;
  }
  return found;
}

const char* word(Finding::Level level) {
  switch (level) {
    case Finding::Level::fine:
      return "ok";
    case Finding::Level::warning:
      return "warn";
    case Finding::Level::failure:
      break;
  }
  return "FAIL";
}

void print_json(const std::vector<Finding>& findings) {
  std::string out = "{\"findings\":[";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    out += i > 0 ? ",\n{\"level\":\"" : "\n{\"level\":\"";
    out.append(findings[i].level == Finding::Level::failure ? "fail" : word(findings[i].level)).append("\",\"what\":");
    append_json_text(out, findings[i].what);
    append_json_text(out.append(",\"advice\":"), findings[i].advice);
    out += '}';
  }
  std::printf("%s]}\n", out.c_str());
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::printf("%-5s %s\n", word(finding.level), printable(finding.what).c_str());
    if (!finding.advice.empty()) std::printf("      -> %s\n", printable(finding.advice).c_str());
  }
}

}  // namespace

DoctorCommand::DoctorCommand(CLI::App& app, std::string version) : version_(std::move(version)) {
  doctor_ = app.add_subcommand("doctor", "Check a running server: what is wrong, and how to fix it");
  doctor_->add_flag("--strict", strict_, "Exit with 1 on warnings, too");
  doctor_->add_flag("--json", json_, "Print one JSON object");
  server_.add(*doctor_, "Admin API address of the server");
  server_.add_token(*doctor_);
}

void DoctorCommand::ask_policy(Patient& patient) const {
  const auto answer = server_.get("/admin/v1/config");
  if (!answer) {
    patient.policy_problem = answer.error().message;
    return;
  }
  const std::string& text = answer->at("text").text;
  if (text.empty()) return;  // no rules
  if (auto policy = parse_policy(text, "config")) {
    patient.policy = *std::move(policy);
  } else {
    patient.policy_problem = policy.error().message;
  }
}

Result<Patient> DoctorCommand::ask() const {
  Patient patient;
  for (const auto& [target, answer] :
       {std::pair{"/admin/v1/status", &patient.status}, std::pair{"/admin/v1/rules", &patient.rules},
        std::pair{"/admin/v1/nodes", &patient.nodes}}) {
    auto value = server_.get(target);
    if (!value) return fail(value.error());
    *answer = *std::move(value);
  }
  if (auto metrics = server_.call("GET", "/metrics")) patient.metrics = std::move(metrics->body);
  ask_policy(patient);
  patient.now = make_system_clock()->now();
  patient.version = version_;
  patient.is_here = server_.is_on_this_machine();
  if (!patient.is_here) return patient;
  patient.is_clock_kept = is_clock_kept();
  const std::string file = patient.status.at("state").text;
  if (!file.empty()) patient.filesystem = filesystem_of(absolute(file, patient.status.at("pid").text));
  return patient;
}

std::optional<int> DoctorCommand::run() {
  if (!*doctor_) return std::nullopt;
  const auto patient = ask();
  if (!patient) return complain(patient.error().message, kCouldNot);
  const auto findings = examine(*patient);
  if (json_) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const Finding::Level least = strict_ ? Finding::Level::warning : Finding::Level::failure;
  return std::ranges::any_of(findings, [least](const Finding& one) { return one.level >= least; }) ? kCouldNot : 0;
}

}  // namespace weir
