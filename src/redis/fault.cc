// Classifies errors of Redis by their first word. See fault.h.
#include "redis/fault.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::redis {
namespace {

constexpr std::array<std::pair<std::string_view, FaultKind>, 15> kWords = {{
    {"LOADING", FaultKind::loading},
    {"BUSY", FaultKind::busy},
    {"OOM", FaultKind::oom},
    {"READONLY", FaultKind::readonly},
    {"NOAUTH", FaultKind::noauth},
    {"WRONGPASS", FaultKind::noauth},
    {"NOPERM", FaultKind::noperm},
    {"MISCONF", FaultKind::misconf},
    {"CLUSTERDOWN", FaultKind::cluster_down},
    {"MASTERDOWN", FaultKind::master_down},
    {"TRYAGAIN", FaultKind::try_again},
    {"NOSCRIPT", FaultKind::noscript},
    {"WRONGTYPE", FaultKind::wrong_type},
    {"UNBLOCKED", FaultKind::readonly},  // the server became a replica while the command was blocked
    {"NOREPLICAS", FaultKind::misconf},
}};

FaultKind kind_of_word(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const auto* const row = std::ranges::find(kWords, word, &std::pair<std::string_view, FaultKind>::first);
  return row == kWords.end() ? FaultKind::error : row->second;
}

}  // namespace

std::string_view name_of(FaultKind kind) {
  constexpr std::array<std::string_view, 17> kNames = {"timeout",         "disconnected", "too many in flight",
                                                       "loading",         "busy",         "oom",
                                                       "readonly",        "noauth",       "noperm",
                                                       "misconf",         "cluster_down", "master_down",
                                                       "moved_too_often", "try_again",    "noscript",
                                                       "wrong_type",      "error"};
  return kNames[static_cast<std::size_t>(kind)];
}

// For a script, the error has other words than for a client; Redis to 7.0 and later versions differ too.
bool is_forbidden(std::string_view text) {
  constexpr std::string_view kParts[] = {"NOPERM", "The user executing the script can't", "ACL failure in script"};
  return std::ranges::any_of(kParts, [text](std::string_view part) { return text.find(part) != text.npos; });
}

FaultKind kind_of_error(std::string_view text) {
  if (is_forbidden(text)) return FaultKind::noperm;
  if (!text.starts_with("ERR Error running script")) return kind_of_word(text);
  // Redis 6: ERR Error running script (call to f_...): @user_script:1: -OOM command not allowed ...
  const std::size_t place = text.find("@user_script:");
  const std::size_t cause = place == text.npos ? text.npos : text.find(": ", place);
  if (cause == text.npos) return FaultKind::error;
  text.remove_prefix(cause + 2);
  if (text.starts_with("@user_script: ")) text.remove_prefix(std::min(text.find(": ") + 2, text.size()));
  while (!text.empty() &&
         ((text.front() >= '0' && text.front() <= '9') || text.front() == ':' || text.front() == ' ')) {
    text.remove_prefix(1);
  }
  if (text.starts_with('-')) text.remove_prefix(1);
  return kind_of_word(text);
}

std::string fit_for_log(std::string_view text) {
  std::string out(text.substr(0, kFaultTextMax));
  std::ranges::replace_if(
      out,
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || static_cast<unsigned char>(c) > 0x7f; },
      '?');
  if (text.size() > kFaultTextMax) out += "...";
  return out;
}

}  // namespace weir::redis
