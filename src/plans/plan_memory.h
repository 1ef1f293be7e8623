// What the database last said, in a file: a server that is started while the database is away knows its plans.
//
// Written whole, beside and then renamed, so that there is always one that is whole; it belongs to one source, and one
// that is damaged, or of another source, is as if it were not there. The rows in it are as untrusted as those of the
// database. One thread. Tested by plan_memory_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir {

struct RememberedRow {
  std::string subject{};
  std::string text{};  // of row_text()
};

// `source` tells whose rows they are; anything that is the same for the same.
Result<void> write_plan_memory(const std::string& path, std::string_view source,
                               const std::vector<RememberedRow>& rows);

// not_found if there is no such file, or if it is of another source.
Result<std::vector<RememberedRow>> read_plan_memory(const std::string& path, std::string_view source);

}  // namespace weir
