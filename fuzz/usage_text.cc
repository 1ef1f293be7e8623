// Fuzzes usage files and the names of subjects: a text is refused, or what was parsed is the same after printing and
// parsing it.
//
// The bytes become the lines of a file. The target appends the correct hash, because the parser refuses a file with a
// wrong one before it reads the lines.
#include <cstddef>
#include <string>

#include "base/sha256.h"
#include "fuzz.h"
#include "policy/subject.h"
#include "usage/accounts.h"
#include "usage/sheet.h"

using namespace weir;

void fuzz(std::string_view input) {
  const std::string bytes(input);
  if (const auto id = policy::parse_subject(bytes)) {
    const auto again = policy::parse_subject(policy::subject_text(*id));
    WEIR_ASSERT(again && *again == *id);
    const std::string hidden = policy::hashed_subject(*id);
    const auto found = policy::parse_subject(policy::subject_text(hidden));
    WEIR_ASSERT(found && *found == hidden);
  }
  static_cast<void>(usage::parse_accounts(bytes));
  const std::string lines = "weir-usage 1\n" + bytes + (bytes.ends_with('\n') ? "" : "\n");
  const auto accounts = usage::parse_accounts(lines + "end " + base::hex(base::sha256(lines)) + '\n');
  if (!accounts) return;
  const auto again = usage::parse_accounts(usage::to_text(*accounts));
  WEIR_ASSERT(again && *again == *accounts);
  for (const std::size_t places : {1U, 3U, 100U}) {
    usage::Sheet sheet(accounts->day, places, 7);
    sheet.take(*accounts);
    sheet.add(sheet.rule_of("r"), "x", {.charged = 1});
    WEIR_ASSERT(sheet.size() <= places);
  }
}
