// One function for each aspect of a server. See doctor.h.
#include "cli/doctor.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/ip_address.h"
#include "cli/table_text.h"
#include "protocol/seconds.h"

namespace weir::cli {
namespace {

void look_at_version(const Patient& patient, Findings& out) {
  const std::string& version = patient.status.at("version").text;
  if (version == patient.version) return fine(out, "weir " + version + ", process " + patient.status.at("pid").text);
  warn(out, "the server is weir " + version + ", this program is weir " + patient.version,
       "to run the installed version without downtime: kill -USR2 " + patient.status.at("pid").text);
}

void look_at_switches(const Patient& patient, Findings& out) {
  if (patient.status.at("kill_switch").is_true) {
    bad(out, "the kill switch is on: all rules and bans are off", "weir rules kill-switch off");
  }
  const protocol::JsonValue& reload = patient.status.at("config").at("last_reload");
  if (!reload.at("error").text.empty()) {
    bad(out, "the last config reload failed: " + reload.at("error").text,
        "fix the file; weir validate FILE lists every error");
  }
  if (!patient.status.at("ready").is_true) bad(out, "the server is stopping or not ready", "see the server's log");
}

void look_at_descriptors(const Patient& patient, Findings& out) {
  double wanted = 64;
  for (const protocol::JsonValue& listener : patient.status.at("listeners").items)
    wanted += listener.at("connections_max").number();
  const double most = metric(patient.metrics, "process_max_fds", 0);
  const std::string figures = "file descriptor limit " + std::to_string(static_cast<long long>(most)) +
                              ", connections may need " + std::to_string(static_cast<long long>(wanted));
  if (most >= wanted) return fine(out, figures);
  warn(out, figures, "raise the limit (ulimit -n, LimitNOFILE=) or lower --connections");
}

void look_at_clock(const Patient& patient, Findings& out) {
  if (!patient.is_here) {
    return fine(
        out, "clock and disk not checked: --admin is not a loopback address; run weir doctor on the server's machine");
  }
  if (patient.is_clock_kept) return fine(out, "the clock is synchronized");
  warn(out, "this machine's clock is not synchronized",
       "run an NTP client: calendar limits, Retry-After and fleets need the correct time");
}

void look_at_plans(const Patient& patient, Findings& out) {
  if (patient.policy.plans.source.empty()) return;
  const double age = metric(patient.metrics, "weir_plans_age_seconds", 0);
  if (metric(patient.metrics, "weir_plans_up", 0) > 0) {
    fine(out, "the plan database answers");
  } else {
    bad(out, "the plan database has not answered for " + protocol::wait_text(age),
        "known subjects keep their plans, new ones get the default; weir plan status shows the error");
  }
  const double refused = metric(patient.metrics, "weir_plans_refused_total", 0);
  if (refused > 0) {
    warn(out, base::counted(static_cast<long long>(refused), "invalid row") + " in the plan database",
         "weir plan status shows the latest; their subjects keep the previous plan and limits");
  }
  const double subjects = metric(patient.metrics, "weir_plans_subjects", 0);
  if (subjects > 0.95 * patient.policy.plans.subjects) {
    warn(out,
         "the plan cache is nearly full: " + std::to_string(static_cast<long long>(subjects)) + " of " +
             std::to_string(patient.policy.plans.subjects) + " subjects",
         "raise plans: {subjects: N}; subjects without recent requests are evicted, and looked up when they return");
  }
}

void look_at_table(const Patient& patient, Findings& out) {
  const protocol::JsonValue& table = patient.status.at("table");
  const double fill = table.at("fill").number();
  const std::string figures =
      "the table is " + tenths(100 * fill) + " % full, " + base::counted(table.at("keys").text, "key");
  if (fill < 0.8) {
    fine(out, figures);
  } else {
    warn(out, figures, "raise --keys or --memory; for a state file: weir state resize");
  }
  const auto count = [&](std::string_view name) {
    return static_cast<long long>(metric(patient.metrics, std::string(name), 0));
  };
  const std::string fix = "raise --keys, or find the flood of keys: weir top";
  if (const long long evicted = count("weir_evictions_total"); evicted > 0) {
    warn(out, base::counted(evicted, "live key") + " evicted", fix);
  }
  if (const long long early = count("weir_early_denials_total"); early > 0) {
    warn(out,
         base::counted(early, "request") +
             " of new keys denied early: in a full table, new keys start with the usage of evicted keys",
         fix);
  }
  if (const long long no_room = count("weir_no_room_total"); no_room > 0) {
    warn(out, base::counted(no_room, "request") + " denied because the table was full (no_room)", fix);
  }
  if (const long long compacted = count("weir_compacted_logs_total"); compacted > 0) {
    warn(out,
         "the log arena was full: " + base::counted(compacted, "key") +
             " of sliding_log compacted; each admits between half and all of its limit",
         "raise --keys or --memory to enlarge the arena, or use sliding_window");
  }
}

// File systems that are remote or user-space programs, which do not suit a mapped file.
bool is_remote(std::string_view filesystem) {
  constexpr std::string_view kRemote[] = {"cifs", "smb3", "smbfs", "9p", "ceph", "afs", "fuse"};
  return filesystem.starts_with("nfs") || filesystem.starts_with("fuse.") ||
         std::ranges::find(kRemote, filesystem) != std::end(kRemote);
}

void look_at_state(const Patient& patient, Findings& out) {
  const std::string& file = patient.status.at("state").text;
  const bool is_shared = patient.nodes.at("nodes").kind == protocol::JsonValue::Kind::array;
  if (file.empty() && is_shared) return;  // Redis keeps the counts
  if (file.empty()) {
    return warn(out, "no state file: a restart loses all counts", "weir serve --state FILE");
  }
  const std::string where =
      "the state is in " + file + (patient.filesystem.empty() ? "" : ", on " + patient.filesystem);
  if (is_remote(patient.filesystem)) {
    return bad(out, where, "a memory-mapped file needs a local disk: stop the server, then move the file");
  }
  if (patient.filesystem == "tmpfs" || patient.filesystem == "ramfs") {
    return warn(out, where, "it does not survive a reboot; to keep it, use --state with a file on a disk");
  }
  fine(out, where);
}

void look_at_policy(const Patient& patient, Findings& out) {
  if (patient.policy_problem.empty()) return;
  warn(out, "the config in effect could not be read: " + patient.policy_problem,
       "trusted_proxies and expired rules were not checked; print the config with weir rules show, check it with weir "
       "validate");
}

void look_at_trust(const Patient& patient, Findings& out) {
  if (!patient.policy_problem.empty()) return;
  bool is_wide = false;
  for (const std::string& range : patient.policy.trusted_proxies) {
    const auto parsed = base::parse_ip_range(range);
    if (!parsed) continue;
    const int free_bits = 128 - parsed->bits, all_bits = parsed->is_v4() ? 32 : 128;
    if (free_bits == all_bits) {
      bad(out, "trusted_proxies covers every address (" + range + "): any client can claim any address",
          "list only your proxies");
    } else if (free_bits > (parsed->is_v4() ? 24 : 96)) {
      warn(out, "trusted_proxies covers very many addresses (" + range + ")", "list only your proxies");
    } else {
      continue;
    }
    is_wide = true;
  }
  if (!is_wide) fine(out, base::counted(patient.policy.trusted_proxies.size(), "trusted proxy range"));
}

void look_at_rules(const Patient& patient, Findings& out) {
  constexpr std::int64_t kLongEnough = 60;  // seconds of uptime before the lack of hits means something
  const auto& rules = patient.rules.at("rules").items;
  const std::int64_t of_envoy = patient.status.at("config").at("envoy_limits").whole();
  if (of_envoy > 0) fine(out, base::counted(of_envoy, "limit") + " from Envoy's files");
  if (rules.empty() && of_envoy > 0) return;
  if (rules.empty()) return warn(out, "there are no rules", "weir serve --config weir.yaml");
  const bool is_young = patient.status.at("uptime_seconds").whole() < kLongEnough;
  const bool are_all_off = patient.status.at("kill_switch").is_true;  // reported already
  std::size_t enforced = 0;
  for (const protocol::JsonValue& rule : rules) {
    const std::string& name = rule.at("name").text;
    if (rule.at("mode").text == "enforce") ++enforced;
    if (rule.at("mode").text != rule.at("configured_mode").text && !are_all_off) {
      warn(out, "rule " + name + " was changed to " + rule.at("mode").text + " at runtime",
           "weir rules changes shows who did it, weir rules undo reverts it");
    }
    if (rule.at("last_hit").text.empty() && rule.at("mode").text != "off" && !is_young) {
      warn(out, "rule " + name + " has never matched a request", "check its match with weir keys explain");
    }
  }
  for (const Rule& rule : patient.policy.rules) {
    if (rule.expires_at && *rule.expires_at <= patient.now) {
      warn(out, "rule " + rule.name + " has expired", "remove it from the config, or set a new expires_at");
    }
  }
  if (are_all_off) return;
  if (enforced == 0) {
    warn(out, "no rule is enforced", "rules in shadow mode deny nothing; set mode: enforce");
  } else {
    fine(out, "rules enforced: " + std::to_string(enforced) + " of " + std::to_string(rules.size()));
  }
}

void look_at_certificate(const Patient& patient, Findings& out) {
  const double ends = metric(patient.metrics, "weir_tls_certificate_expiry_timestamp_seconds", 0);
  if (ends <= 0) return;
  const double days = (ends - static_cast<double>(patient.now.count()) / 1e6) / 86'400;
  const std::string left = "the TLS certificate expires in " + base::counted(static_cast<long long>(days), "day");
  if (days <= 0)
    return bad(out, "the TLS certificate has expired", "renew it; the server loads the new file by itself");
  if (days < 14) return warn(out, left, "renew it; the server loads the new file by itself");
  fine(out, left);
}

void look_at_listeners(const Patient& patient, Findings& out) {
  for (const protocol::JsonValue& listener : patient.status.at("listeners").items) {
    const double open = listener.at("connections").number(), most = listener.at("connections_max").number();
    if (most > 0 && open > 0.8 * most) {
      warn(out,
           "listener " + listener.at("name").text + ": " + listener.at("connections").text + " of " +
               listener.at("connections_max").text + " connections in use",
           "raise --connections, or find the clients that keep them open");
    }
  }
}

}  // namespace

double metric(std::string_view metrics, std::string_view name, double otherwise) {
  const std::string line = "\n" + std::string(name) + " ";
  const std::size_t at = metrics.find(line);
  if (at == metrics.npos) return otherwise;
  double value = otherwise;
  std::from_chars(metrics.data() + at + line.size(), metrics.data() + metrics.size(), value);
  return value;
}

Findings examine(const Patient& patient) {
  Findings out;
  look_at_version(patient, out);
  look_at_switches(patient, out);
  look_at_rules(patient, out);
  look_at_policy(patient, out);
  look_at_trust(patient, out);
  look_at_plans(patient, out);
  look_at_table(patient, out);
  look_at_state(patient, out);
  look_at_store(patient, out);
  look_at_descriptors(patient, out);
  look_at_listeners(patient, out);
  look_at_clock(patient, out);
  look_at_certificate(patient, out);
  return out;
}

}  // namespace weir::cli
