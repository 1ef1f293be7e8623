// Fuzzes the text that spending is kept in, and the names of subjects: whatever a file says, it is refused or
// understood, and what was understood is written so that it reads the same.
//
// The bytes stand where a file has its lines; the hash at its end is made right here, or none would ever be looked at.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/sha256.h"
#include "policy/subject.h"
#include "usage/accounts.h"
#include "usage/sheet.h"
#include "weir/result.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto id = parse_subject(bytes)) {
    const auto again = parse_subject(subject_text(*id));
    WEIR_ASSERT(again && *again == *id);
    const std::string hidden = hashed_subject(*id);
    const auto found = parse_subject(subject_text(hidden));
    WEIR_ASSERT(found && *found == hidden);
  }
  static_cast<void>(parse_accounts(bytes));
  const std::string lines = "weir-usage 1\n" + bytes + (bytes.ends_with('\n') ? "" : "\n");
  const auto accounts = parse_accounts(lines + "end " + hex(sha256(lines)) + '\n');
  if (!accounts) return 0;
  const auto again = parse_accounts(to_text(*accounts));
  WEIR_ASSERT(again && *again == *accounts);
  for (const std::size_t places : {1U, 3U, 100U}) {
    Sheet sheet(accounts->day, places, 7);
    sheet.take(*accounts);
    sheet.add(sheet.rule_of("r"), "x", {.spent = 1});
    WEIR_ASSERT(sheet.size() <= places);
  }
  return 0;
}
