// The result of an operation that can fail: a value, or an Error that says what to do.
//
// Three kinds of outcome stay separate. A denial is a value (Decision). A bad quota, a key that is too long or a full
// store is an Error. A broken invariant stops the program: WEIR_ASSERT.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace weir {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // the caller's text or value is wrong
  out_of_range,      // well formed, but beyond a bound that the message names
  not_found,         // nothing has this name
  exhausted,         // a bounded resource is full
  unavailable,       // a file, a socket or a peer could not be used
};

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;      // for the person who must act: what was found, what would be right
  std::int32_t column = 0;  // 1-based, within the parsed text; 0: no column
};

template <class T>
using Result = tl::expected<T, Error>;

// fail()
//
// A short way to return an Error from a function that returns any Result<T>.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::int32_t column = 0) {
  return tl::unexpected<Error>(Error{code, std::move(message), column});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace weir

// Aborts on a programmer's error, in release builds, too. Use one condition per assertion.
#define WEIR_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::weir::assertion_failed(#condition, __FILE__, __LINE__))
