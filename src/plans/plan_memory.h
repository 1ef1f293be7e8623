// The last known plans in a file, for a server that starts while the database is unavailable.
//
// The file is written to a temporary name and renamed, so there is always a complete one. It belongs to one source. A
// damaged file, or one of another source, counts as missing. Its rows are as untrusted as those of the database. One
// thread may call it. Tested by plan_memory_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::plans {

struct RememberedRow {
  std::string subject{};
  std::string text{};  // as row_text() encodes it
};

// `source` identifies the database: any text that is the same for the same database.
Result<void> write_plan_memory(const std::string& path, std::string_view source,
                               const std::vector<RememberedRow>& rows);

// Fails with not_found if there is no such file, or if it belongs to another source.
Result<std::vector<RememberedRow>> read_plan_memory(const std::string& path, std::string_view source);

}  // namespace weir::plans
