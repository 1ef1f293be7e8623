// Whether this is a build under a sanitizer.
//
// It looks for other faults than the plain build, for which a part of the work is enough: tests that count in thousands
// ask here how many. A constant; used by differential_test.cc, linearizable_test.cc and others.
#pragma once

namespace weir::test {

// gcc has macros for it, clang a question.
#if defined(__has_feature)
#define WEIR_HAS_FEATURE(name) __has_feature(name)
#else
#define WEIR_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || WEIR_HAS_FEATURE(address_sanitizer) || \
    WEIR_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace weir::test
