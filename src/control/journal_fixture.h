// A journal that is open from its construction on, for tests.
//
// The test that constructs it fails if the file cannot be opened. One thread may use it. Used by journal_test.cc and
// the other tests of the journal.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "control/journal.h"

namespace weir::control {

struct OpenJournal : Journal {
  explicit OpenJournal(const std::string& path, SharedChanges* shared = nullptr) {
    const auto opened = open(path, shared);
    EXPECT_TRUE(opened) << opened.error().message;
  }
};

}  // namespace weir::control
