// The flags for reports on clients. See usage_options.h.
#include "program/usage_options.h"

#include "command/complain.h"

namespace weir {

void UsageOptions::add(CLI::App& app) {
  app.add_flag("--hash-keys", hash_keys, "Show the busiest keys as hashes, never users or addresses in clear");
  app.add_option("--usage-subjects", subjects,
                 "Know what so many subjects spent on a day, a rule each; 0: of nobody, 1000000: at most")
      ->type_name("N")
      ->check(whole_number_to(kSpendingSubjectsMax, 0))
      ->capture_default_str();
  app.add_option("--usage-days", days, "For so many days, today included")
      ->type_name("N")
      ->check(whole_number_to(3'660))
      ->capture_default_str();
}

GateOptions UsageOptions::gate_options() const {
  return {.key_names = hash_keys ? KeyNames::hashed : KeyNames::plain,
          .spending = {.subjects = subjects, .days = days}};
}

UsageKeeperOptions UsageOptions::keeper_options(const std::string& state) const {
  UsageKeeperOptions options;
  if (!state.empty()) options.folder = state + ".usage";
  options.days = days;
  return options;
}

}  // namespace weir
