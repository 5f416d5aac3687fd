// JSON as a tree: the places of its values, Python's words, and texts that are no JSON or would exhaust the process.
#include "scenarios/reading/json_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/document.h"

namespace tandem::scenarios::json_tree_test {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(JsonTree, SaysWhereEachValueStands) {
  const YamlNode tree = parse_json("{\"a\":1,\n  \"b\": [ true, {\"c\":\n\t\"x\\\"y\"}, null],\"d\":2.50}", "f.json");
  const auto place = [&](const char* path) { return place_of(tree, path).text(); };
  EXPECT_EQ(place("a"), "f.json:1:6");
  EXPECT_EQ(place("b"), "f.json:2:8");
  EXPECT_EQ(place("b.0"), "f.json:2:10");
  EXPECT_EQ(place("b.1"), "f.json:2:16");
  EXPECT_EQ(place("b.1.c"), "f.json:3:2");
  EXPECT_EQ(place("b.2"), "f.json:3:11");
  EXPECT_EQ(place("d"), "f.json:3:21");
  EXPECT_EQ(tree.entries[1].place.text(), "f.json:2:3");
  EXPECT_EQ(to_yaml(tree), R"({a: 1, b: [true, {c: "x\"y"}, ~], d: 2.50})");
}

TEST(JsonTree, TakesPythonsWordsForTexts) {
  const YamlNode tree =
      parse_json(R"({"a": [0.0, Infinity, -Infinity], "b": NaN, "c": "NaN and \"Infinity\"", "d": 4})", "f.json");
  EXPECT_EQ(to_yaml(tree), R"({a: [0.0, "inf", "-inf"], b: "?", c: "NaN and \"Infinity\"", d: 4})");
  EXPECT_EQ(place_of(tree, "d").column, 79);
}

TEST(JsonTree, RefusesWithAPlace) {
  EXPECT_THAT(refusal("{\"a\": 1,\n \"a\": 2}"), HasSubstr("f.json:2:2: key `a` is given twice, first on line 1"));
  EXPECT_THAT(refusal("{\"a\": 1,\n \"b\" 2}"), HasSubstr("f.json:2:6: wrong JSON: syntax error while parsing object separator"));
  EXPECT_THAT(refusal("{\"a\": 1"), HasSubstr("f.json:1:8: wrong JSON: "));
  EXPECT_THAT(refusal(""), HasSubstr("wrong JSON"));
  EXPECT_THAT(refusal("{} x"), HasSubstr("wrong JSON"));
  EXPECT_THAT(refusal("{\"a\": 1e999999}"), HasSubstr("f.json:1:7: wrong JSON: number overflow"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("f.json:1:33: values are nested deeper than 32 levels"));
  std::string many = "[0";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  EXPECT_THAT(refusal(many + "]"), HasSubstr("the file holds more than 20,000 values"));
}

}  // namespace
}  // namespace tandem::scenarios::json_tree_test
