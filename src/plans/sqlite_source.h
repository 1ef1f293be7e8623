// Plans in a file of SQLite. Made by make_plan_source(); the one source file that sees the library is
// sqlite_connection.cc.
//
// A change is noticed by `PRAGMA data_version`, which costs some microseconds and is read ten times a second; so is
// another file in the place of this one. Tested by sqlite_source_test.cc.
#pragma once

#include <memory>
#include <string>

#include "plans/plan_source.h"

namespace weir {

std::unique_ptr<PlanSource> make_sqlite_source(std::string file, const PlanSourceOptions& options);

}  // namespace weir
