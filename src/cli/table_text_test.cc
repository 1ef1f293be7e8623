// Tests aligned columns, counts, and that terminal controls are replaced.
#include "cli/table_text.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(TableText, ReplacesWhatATerminalWouldActUpon) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(printable("a\xc2\x9b\x32Jb\xc2\x80\xc2\x9f"), "a?2Jb??") << "U+009B means ESC [";
  EXPECT_EQ(printable("\xc2\xa0\xc2\xbf\xc3\x9f\xe2\x82\xac"), "\xc2\xa0\xc2\xbf\xc3\x9f\xe2\x82\xac");
  EXPECT_EQ(printable("cut \xc2"), "cut ?");
  EXPECT_EQ(printable("\x9b\x32J"), "?2J") << "for a terminal that does not use UTF-8";
  EXPECT_EQ(printable("a\u202Eb\u2028c\u2066d\u200Fe"), "a?b?c?d?e");
  EXPECT_EQ(printable("\u05D0\u0639\u4E2D\U0001F600"), "\u05D0\u0639\u4E2D\U0001F600");
}

TEST(TableText, KeepsTheLinesOfAText) {
  EXPECT_EQ(printable_lines("a\x1b[2J\nb\n\nc", "  "), "a?[2J\n  b\n  \n  c");
  EXPECT_EQ(printable_lines("a"), "a");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(TableText, WritesTimesForPeople) {
  EXPECT_EQ(utc_text("2026-11-19T20:03:28.517Z"), "2026-11-19 20:03:28 UTC");
  EXPECT_EQ(utc_text("2026-11-19T20:03:28Z"), "2026-11-19 20:03:28 UTC");
  EXPECT_EQ(utc_text("2026-11-19"), "2026-11-19");
  EXPECT_EQ(utc_text(""), "");
}

TEST(TableText, AlignsByThePrintedWidth) {
  TableText table({"key", ">hits"});
  table.add({"a\xc2\x9b", "7"});
  table.add({"\xc3\xa9t\xc3\xa9", "1234"});
  EXPECT_EQ(table.text(), "key  hits\na?      7\n\xc3\xa9t\xc3\xa9  1234\n");
}

TEST(TableText, CountsInTheSingularAndThePlural) {
  EXPECT_EQ(base::counted(0, "rule"), "0 rules");
  EXPECT_EQ(base::counted(1, "rule"), "1 rule");
  EXPECT_EQ(base::counted(std::size_t{2}, "rule"), "2 rules");
  EXPECT_EQ(base::counted("1", "node"), "1 node");
  EXPECT_EQ(base::counted("1134", "key"), "1134 keys");
}

}  // namespace
}  // namespace weir::cli
