// Plans in PostgreSQL. Made by make_plan_source(); the one source file that sees the library is postgres_connection.cc.
//
// One connection, never waited for beyond the patience. A change is told by NOTIFY weir_plans: its payload is a
// subject, or empty if anything may have changed. Tested by postgres_source_test.cc.
#pragma once

#include <memory>

#include "plans/plan_source.h"

namespace weir {

Result<std::unique_ptr<PlanSource>> make_postgres_source(const PlanSourceOptions& options);

}  // namespace weir
