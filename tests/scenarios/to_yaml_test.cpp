// A document written as one line of YAML parses to the same values.
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/presets.h"

namespace tandem::scenarios::to_yaml_test {
namespace {

void expect_same_values(const YamlNode& a, const YamlNode& b) {
  ASSERT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_same_values(a.items[i], b.items[i]);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (const YamlNode::Entry& entry : a.entries) {
    ASSERT_NE(b.find(entry.key), nullptr) << entry.key;
    expect_same_values(entry.value, *b.find(entry.key));
  }
}

TEST(ToYaml, ShippedScenariosComeBackTheSame) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios")) {
    if (file.path().extension() != ".yaml") continue;
    SCOPED_TRACE(file.path());
    YamlNode document = parse_yaml(read_text_file(file.path(), "a scenario"), file.path());
    tidy_names(document);
    resolve_presets(document, TANDEM_SOURCE_DIR "/scenarios");
    const std::string text = to_yaml(document);
    const YamlNode again = parse_yaml(text, "again.yaml");
    expect_same_values(document, again);
    EXPECT_EQ(to_yaml(again), text);
    EXPECT_EQ(read_document(again, "").name, read_document(document, "").name);
    ++count;
  }
  EXPECT_GE(count, 9);
}

TEST(ToYaml, AwkwardTextComesBackTheSame) {
  for (const char* text : {"",     "~",    "null", "a: b", "[x",  "{",    "- a",   "#c",  "a #c", "\"",  "'", "\\", "a\nb", "\t",
                           "\x7f", "*a",   "&a",   "!t",   "%x",  "@",    "`",     "a,b", " a ",  "é漢", "-", "--", ".",    "...",
                           "---",  "true", "1e5",  ".5",   "-.5", "0x1F", "12:30", "<<",  "=",    "?",   "|", ">"}) {
    SCOPED_TRACE(text);
    YamlNode document = make_node(YamlNode::Kind::mapping, {});
    YamlNode value = make_scalar(text, {});
    value.quoted = true;
    YamlNode list = make_node(YamlNode::Kind::sequence, {});
    list.items = {value, make_node(YamlNode::Kind::null, {})};
    document.entries.push_back({"key", "key", {}, list});
    expect_same_values(document, parse_yaml(to_yaml(document), "s.yaml"));
  }
}

TEST(ToYaml, NumbersStayNumbersAndQuotedTextStaysText) {
  const YamlNode document = parse_yaml("a: {x: 4, y: \"4\", z: -2.5e-3, w: +1, v: true}", "s.yaml");
  EXPECT_EQ(to_yaml(document), "{a: {v: true, w: +1, x: 4, y: \"4\", z: -2.5e-3}}");
}

TEST(ToYaml, TheOrderOfFieldsDoesNotMatter) {
  EXPECT_EQ(to_yaml(parse_yaml("{b: [2, 1], a: ~}", "s.yaml")), to_yaml(parse_yaml("a:\nb:\n- 2\n- 1\n", "s.yaml")));
}

}  // namespace
}  // namespace tandem::scenarios::to_yaml_test
