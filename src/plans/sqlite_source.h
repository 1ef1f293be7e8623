// Plans in a SQLite file, created by make_plan_source(). Only sqlite_connection.cc includes SQLite.
//
// Ten times a second it checks for changes with `PRAGMA data_version`, which takes some microseconds, and checks
// whether the file was replaced by another. Tested by sqlite_source_test.cc.
#pragma once

#include <memory>
#include <string>

#include "plans/plan_source.h"

namespace weir {

std::unique_ptr<PlanSource> make_sqlite_source(std::string file, const PlanSourceOptions& options);

}  // namespace weir
