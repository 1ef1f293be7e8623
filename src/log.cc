// The log. See log.h.
#include "log.h"

#include <cstdio>
#include <string>

namespace weir {

void log(LogLevel, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = "weir: ";
  line.append(message);
  for (const LogField& field : fields) line.append(" ").append(field.name).append("=").append(field.value);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weir
