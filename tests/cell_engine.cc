// The C++ arithmetic as an engine: see cell_engine.h.

#include "cell_engine.h"

namespace weir::test {

std::unique_ptr<Engine> cell_engine(const Limit& limit) { return std::make_unique<CellEngine>(limit); }

}  // namespace weir::test
