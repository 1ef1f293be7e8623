// The flags for logs and traces. See log_options.h.
#include "program/log_options.h"

#include <string>

#include "command/complain.h"
#include "nearest.h"

namespace weir {

void LogOptions::add(CLI::App& app) {
  app.add_option_function<std::string>(
         "--log-format",
         [this](const std::string& name) {
           if (name != "text" && name != "json") {
             throw CLI::ValidationError("--log-format", in_quotes(name) + " is no format; write text or json");
           }
           format = name == "json" ? LogFormat::json : LogFormat::text;
         },
         "How lines on stderr are written: text or json")
      ->type_name("FORMAT")
      ->default_str("text");
  app.add_option_function<std::string>(
         "--log-level",
         [this](const std::string& name) {
           const auto known = log_level_of(name);
           if (!known) {
             throw CLI::ValidationError("--log-level",
                                        in_quotes(name) + " is no level; write debug, info, warn or error");
           }
           level = *known;
         },
         "What is told: debug, info, warn or error, and all that is worse")
      ->type_name("LEVEL")
      ->default_str("info");
  app.add_option("--log-denials", denials.per_second, "How many denials of a second are told, each on a line; 0: none")
      ->type_name("N")
      ->check(whole_number_to(1'000'000, 0))
      ->capture_default_str();
  app.add_option("--traces", traces, "Send spans of checks to this collector, by OTLP over plain HTTP; default: none")
      ->type_name("http://HOST:4318");
  app.add_option("--traces-sample", traces_sample,
                 "The share of requests to trace, 0 to 1, beside those whose traceparent says that they are recorded")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--log-keys", denials.in_clear, "Tell the keys of denials, which are else a hash: they are personal");
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
