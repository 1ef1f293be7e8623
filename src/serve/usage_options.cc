// The flags for reports on clients. See usage_options.h.
#include "serve/usage_options.h"

#include "cli/complain.h"

namespace weir {

void UsageOptions::add(CLI::App& app) {
  app.add_flag("--hash-keys", hash_keys, "Show top keys as hashes, never users or addresses in clear text");
  app.add_option("--usage-subjects", subjects,
                 "Usage accounts per day, one for each subject and rule; 0: none, maximum 1000000")
      ->type_name("N")
      ->check(whole_number_to(kSpendingSubjectsMax, 0))
      ->capture_default_str();
  app.add_option("--usage-days", days, "Days of usage to keep, including today")
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
