// Whether this build has a sanitizer. It looks for other errors than the plain build, and a part of the work is enough
// for that: tests that count in thousands use it to choose the number. A constant.
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
