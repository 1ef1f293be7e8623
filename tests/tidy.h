// Rules for the code that a compiler does not check, as pure functions of a file's path and text.
//
// Each rule returns findings that name the line and the fix. tidy_test.cc tries every rule on bad samples, and then
// checks the whole checkout. To change a rule, edit it here; no comment in the code can switch a rule off.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tidy {

struct File {
  std::string path;  // from the root of the checkout, with slashes
  std::string text;
};

struct Finding {
  std::string path;
  std::size_t line = 0;
  std::string message;
};

using Findings = std::vector<Finding>;
using Paths = std::set<std::string>;

// Which folder may include which, and which folder may use files, sockets or a library. `known` has the paths of all
// files, to tell a file beside this one from a file in src/.
Findings check_layers(const File& file, const Paths& known);

// The row of each folder in the table of CONTRIBUTING.md is the row of that layer.
Findings check_folder_table(const File& contributing);

// Only src/base/clock.cc asks the system for the time.
Findings check_clock(const File& file);

// No type is defined twice in a namespace, and no function is declared twice with the same parameters: no compiler
// notices, and the program then uses either.
Findings check_one_definition(const std::vector<File>& files);

// A folder of src/ is a namespace: src/fleet/ is weir::fleet, src/server/http/ weir::server::http. A file opens no
// other, except to declare a class of another folder, weir::test for what tests share, and weir itself for what
// include/weir declares. `public_text` is the text of those headers.
Findings check_namespaces(const File& file, const std::string& public_text);

// x.lua and x.h define the same functions in the same order, and the Lua is pure.
Findings check_twins(const File& lua, const File& header);

// A file begins with prose: what it is, why it is this way. Where the header or the tested file
// says so already, a sentence will do.
Findings check_head(const File& file, const Paths& known);

// A test that a comment names is there.
Findings check_named_tests(const File& file, const Paths& known);

// Tabs, blanks at the end of a line, long lines, long files, promises without a reference, #pragma once.
Findings check_text(const File& file);

// No path of the machine that someone happened to work on.
Findings check_machine_paths(const File& file);

// strip()
//
// The text with comments blanked, and with strings blanked too if asked; every line stays in its place.
enum class Strings { keep, blank };
std::string strip(std::string_view path, std::string_view text, Strings strings);

std::string to_string(const Findings& findings);

}  // namespace weir::tidy
