#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::hostile_yaml_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_scenario(text, "s.yaml", {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HostileYaml, CyclicAlias) {
  EXPECT_THAT(error_of("model: &m {moe: *m}\n"), HasSubstr("s.yaml:1:17: this alias lies inside the value"));
  EXPECT_THAT(error_of("&all [*all]\n"), HasSubstr("this alias lies inside"));
}

TEST(HostileYaml, AnAliasIsFineElsewhere) {
  std::vector<std::string> lines = base_lines();
  lines[4] = "training: {sequence: &n 16, micro_batch: 1, global_batch: *n}";
  const Scenario scenario = parse_scenario(joined_lines(lines), "s.yaml", {});
  EXPECT_EQ(scenario.training.global_batch, 16);
}

TEST(HostileYaml, AliasesThatExpandExponentially) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += "*a" + std::to_string(i - 1) + ", ";
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), HasSubstr("more than 20,000 values once its aliases are expanded"));
}

TEST(HostileYaml, Nesting) {
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested deeper than 32 levels"));
  std::string mappings;
  for (int i = 0; i < 200; ++i) mappings += "{a: ";
  EXPECT_THAT(error_of(mappings), HasSubstr("nested deeper than 32 levels"));
  std::string indented;
  for (int i = 0; i < 200; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(error_of(indented), HasSubstr("nested deeper than 32 levels"));
}

TEST(HostileYaml, Size) {
  EXPECT_THAT(error_of(std::string(1'000'001, ' ')), HasSubstr("larger than 1 MB"));
  EXPECT_THAT(error_of("a: [" + std::string(60'000, ',') + "]"), HasSubstr("s.yaml"));
}

TEST(HostileYaml, NothingAtAll) {
  EXPECT_EQ(error_of(""), "s.yaml: is empty, expected a scenario in YAML");
  EXPECT_EQ(error_of(" \n\n"), "s.yaml: is empty, expected a scenario in YAML");
  EXPECT_THAT(error_of("# only a comment\n"), testing::StartsWith("s.yaml: the scenario is nothing, expected a mapping"));
  EXPECT_THAT(error_of("---\n"), HasSubstr("the scenario is nothing, expected a mapping"));
  EXPECT_THAT(error_of("just text\n"), HasSubstr("the scenario is `just text`, expected a mapping"));
  EXPECT_THAT(error_of("{}\n"), HasSubstr("model is missing"));
}

TEST(HostileYaml, Binary) {
  EXPECT_EQ(error_of(std::string("model\0: x", 9)), "s.yaml: byte 5 is not UTF-8 text, expected a scenario in YAML");
  EXPECT_THAT(error_of("name: \xff\xfe"), HasSubstr("byte 6 is not UTF-8"));
  EXPECT_THAT(error_of("name: \xc0\xaf"), HasSubstr("byte 6 is not UTF-8")) << "overlong form of a slash";
  EXPECT_THAT(error_of("name: \xed\xa0\x80"), HasSubstr("byte 6 is not UTF-8")) << "surrogate";
  EXPECT_THAT(error_of("name: \xe2\x82"), HasSubstr("byte 6 is not UTF-8")) << "cut off";
  EXPECT_EQ(parse_scenario(base_text() + "# \xe2\x82\xac\n", "s.yaml", {}).name, "base");
}

TEST(HostileYaml, SecondDocument) { EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("s.yaml:2:1: found a second")); }

TEST(HostileYaml, SyntaxErrorsHaveAPlace) {
  EXPECT_THAT(error_of("name: x\nmodel: {layers: 4\n"), HasSubstr("wrong YAML"));
  EXPECT_THAT(error_of("name: x\n\tmodel: y\n"), HasSubstr("s.yaml:2:"));
  EXPECT_THAT(error_of("name: *nowhere\n"), HasSubstr("s.yaml:1:"));
}

TEST(HostileYaml, MessagesStayShortAndPrintable) {
  std::vector<std::string> lines = base_lines();
  lines[3] = "parallelism: {tp: \"\\a\\n" + std::string(5'000, 'x') + "\"}";
  const std::string message = error_of(joined_lines(lines));
  EXPECT_LT(message.size(), 300U);
  EXPECT_EQ(message.find_first_of("\a\n"), std::string::npos);
}

TEST(HostileYaml, FilesThatCannotBeRead) {
  const auto message_of = [](const std::string& path) {
    try {
      load_scenario(path, {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tandem_hostile_yaml";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "llama.yaml") << base_text();
  EXPECT_EQ(message_of((folder / "lama.yaml").string()), (folder / "lama.yaml").string() +
                                                             ": cannot be read: No such file or directory; did you mean `" +
                                                             (folder / "llama.yaml").string() + "`?");
  EXPECT_EQ(message_of(folder.string()), folder.string() + ": is a folder, expected a scenario in YAML");
  EXPECT_THAT(message_of((folder / "llama.yaml" / "deeper").string()), HasSubstr("Not a directory"));
  EXPECT_THAT(message_of("/dev/zero"), HasSubstr("/dev/zero: "));
  EXPECT_THAT(message_of(""), HasSubstr("cannot be read"));
  std::filesystem::remove_all(folder);
}

/// Whatever is done to a valid scenario, the answer is a Scenario or an InputError, soon.
TEST(HostileYaml, RandomDamage) {
  std::mt19937 random(1);
  const std::string good = base_text();
  const std::string spice = "{}[]:,-?&*!|>%@`'\"#\n\t ~0a<=.";
  const auto start = std::chrono::steady_clock::now();
  for (int trial = 0; trial < 3'000; ++trial) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 6; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      const char c = spice[random() % spice.size()];
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 8);
      else if (random() % 2 == 0)
        text.insert(at, 1, c);
      else
        text[at] = c;
    }
    try {
      parse_scenario(text, "s.yaml", {});
    } catch (const InputError&) {
      continue;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace tandem::scenarios::hostile_yaml_test
