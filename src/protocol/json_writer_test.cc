// Tests that the output is JSON, with its commas in the right places.
#include "protocol/json_writer.h"

#include <gtest/gtest.h>

#include "protocol/json_reader.h"

namespace weir::protocol {
namespace {

TEST(JsonWriter, PutsCommasBetweenAndNowhereElse) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.text("a", "x\"<img>\n\xff");
  json.number("b", 7);
  json.begin_object("c");
  json.flag("d", true);
  json.null("e");
  json.end_object();
  json.begin_array("f");
  for (int i = 0; i < 2; ++i) {
    json.begin_object();
    json.end_object();
  }
  json.end_array();
  json.texts("g", {"h", "i"});
  json.texts("j", {});
  json.end_object();
  EXPECT_EQ(out,
            "{\"a\":\"x\\\"<img>\\u000a\xEF\xBF\xBD\",\"b\":7,\"c\":{\"d\":true,\"e\":null},\"f\":[{},{}],"
            "\"g\":[\"h\",\"i\"],\"j\":[]}");
  JsonTexts texts;
  JsonReader reader(out, texts);
  EXPECT_TRUE(reader.skip_value() && reader.at_end());
}

}  // namespace
}  // namespace weir::protocol
