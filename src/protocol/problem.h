// Bodies of responses: application/problem+json (RFC 9457), and the JSON pieces that all bodies consist of.
//
// They are written without a JSON library, since a body has few members and its numbers must be exact: seconds are
// decimals made from integers, never floating point. Pure; any thread may call it. Tested by problem_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/verdict.h"

namespace weir::protocol {

struct Problem {
  int status = 400;
  std::string_view title;                 // a literal: the kind of problem
  std::string detail;                     // what was found, and what would be valid
  std::string_view type = "about:blank";  // a literal
};

// {"type":…,"title":…,"status":…,"detail":…}
std::string problem_body(const Problem& problem);

// Appends seconds: 100,000 µs is 0.1, with at most six decimal places and no trailing zeros. kNever is null.
void append_json_seconds(std::string& out, Micros wait);

// Appends "allowed":…,"limit":…,"remaining":…,"reset_after":…,"retry_after":…,"delay":… without braces.
void append_decision_members(std::string& out, const Decision& decision);

}  // namespace weir::protocol
