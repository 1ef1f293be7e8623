// The flags for logs and traces. See log_options.h.
#include "serve/log_options.h"

#include <string>

#include "base/nearest.h"
#include "cli/complain.h"

namespace weir {

void LogOptions::add(CLI::App& app) {
  app.add_option_function<std::string>(
         "--log-format",
         [this](const std::string& name) {
           if (name != "text" && name != "json") {
             throw CLI::ValidationError("--log-format", "unknown format " + in_quotes(name) + "; write text or json");
           }
           format = name == "json" ? LogFormat::json : LogFormat::text;
         },
         "Log format on stderr: text or json")
      ->type_name("FORMAT")
      ->default_str("text");
  app.add_option_function<std::string>(
         "--log-level",
         [this](const std::string& name) {
           const auto known = log_level_of(name);
           if (!known) {
             throw CLI::ValidationError("--log-level",
                                        "unknown level " + in_quotes(name) + "; write debug, info, warn or error");
           }
           level = *known;
         },
         "Minimum log level: debug, info, warn or error")
      ->type_name("LEVEL")
      ->default_str("info");
  app.add_option("--log-denials", denials.per_second, "Maximum denials to log per second, one line each; 0: none")
      ->type_name("N")
      ->check(whole_number_to(1'000'000, 0))
      ->capture_default_str();
  app.add_option("--traces", traces,
                 "Send trace spans of checks to this collector, as OTLP over plain HTTP; default: none")
      ->type_name("http://HOST:4318");
  app.add_option("--traces-sample", traces_sample,
                 "Share of requests to trace, 0 to 1; requests with a sampled traceparent are always traced")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--log-keys", denials.in_clear,
               "Log the keys of denials in clear text instead of as hashes; keys are personal data");
}

Result<void> LogOptions::fill(ServerOptions& options) const {
  options.denials = denials;
  if (traces.empty()) return {};
  auto target = parse_trace_target(traces);
  if (!target) return fail(target.error().code, "--traces: " + target.error().message);
  options.traces = *std::move(target);
  options.traces.sample = traces_sample;
  options.traces.version = options.version;
  return {};
}

}  // namespace weir
