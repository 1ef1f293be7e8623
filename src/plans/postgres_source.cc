// Plans in PostgreSQL. See postgres_source.h.
#include "plans/postgres_source.h"

namespace weir {

Result<std::unique_ptr<PlanSource>> make_postgres_source(const PlanSourceOptions&) {
  return fail(ErrorCode::unavailable, "not yet");
}

}  // namespace weir
