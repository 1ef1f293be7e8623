// The log's flags. See log_options.h.
#include "program/log_options.h"

#include <string>

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
}

}  // namespace weir
