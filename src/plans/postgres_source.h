// Plans in PostgreSQL, created by make_plan_source(). Only postgres_connection.cc includes libpq.
//
// It uses one connection, and waits for it at most the patience. Changes arrive by NOTIFY weir_plans. The payload is
// a subject, or empty if anything may have changed. Tested by postgres_source_test.cc.
#pragma once

#include <memory>

#include "plans/plan_source.h"

namespace weir {

Result<std::unique_ptr<PlanSource>> make_postgres_source(const PlanSourceOptions& options);

}  // namespace weir
