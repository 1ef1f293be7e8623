// Whether this is a build under a sanitizer: it looks for other faults, for which a part of the work is enough.
#pragma once

namespace weir::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace weir::test
