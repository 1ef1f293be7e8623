// Bodies of answers: application/problem+json (RFC 9457), and the few pieces of JSON that all bodies are made of.
//
// Written by hand, because a body is a handful of members and numbers must be exact: seconds are decimals made
// from integers, never floating point. Pure; any thread. Tested by problem_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/verdict.h"

namespace weir {

struct Problem {
  int status = 400;
  std::string_view title;                 // a literal: what kind of problem
  std::string detail;                     // what was found, what would be right
  std::string_view type = "about:blank";  // a literal
};

// {"type":…,"title":…,"status":…,"detail":…}
std::string problem_body(const Problem& problem);

// As a JSON text with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);

// 100,000 µs is 0.1: at most six places, no more than needed. Never is null.
void append_json_seconds(std::string& out, Micros wait);

// "allowed":…,"limit":…,"remaining":…,"reset_after":…,"retry_after":…,"delay":… without braces.
void append_decision_members(std::string& out, const Decision& decision);

}  // namespace weir
