// Fills in a template: a page whose variable parts are names.
//
// Pure; any thread. Tested by tests/docs_test.cc and tests/server/manual.sh, through the pages.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"

namespace weir::base {

// The page with each of the names, which it has once, replaced by its text.
inline std::string filled(std::string_view page,
                          std::initializer_list<std::pair<std::string_view, std::string>> texts) {
  std::string out(page);
  for (const auto& [name, text] : texts) {
    const std::size_t at = out.find(name);
    WEIR_ASSERT(at != out.npos);
    out.replace(at, name.size(), text);
  }
  return out;
}

}  // namespace weir::base
