// Files of other programs, damaged at random: each is imported or refused with a sentence that has a place, and nothing else
// happens. A sample of each kind of file lies in samples/.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/base/input_error.h"
#include "studies/interop/import_source.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/studies/import_samples.h"

namespace tandem::studies::interop_hostile_test {
namespace {

namespace fs = std::filesystem;

const std::string words[] = {"0",          "-1",
                             "1e308",      "99999999999999999999",
                             "NaN",        "null",
                             "true",       "[]",
                             "{}",         "\"",
                             "'",          "(",
                             ")",          "]",
                             "}",          ",",
                             ":",          "#",
                             "\\",         "\n",
                             "$",          "${X}",
                             "${X:-61}",   "$((1/0))",
                             "$((1<<70))", "[0-99999999]",
                             "[9-0]",      std::string(1, '\0'),
                             "\xff\xfe"};

std::string damaged(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  for (std::size_t change = 1 + below(4); change > 0 && !text.empty(); --change) {
    const std::size_t at = below(text.size()), size = std::size_t{1} << below(8);
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, std::string(text, at, size));
        break;
      case 3:
        text.insert(at, words[below(std::size(words))]);
        break;
      case 4:
        text.resize(at);
        break;
      case 5: {  // a number or word becomes another
        const auto is_inside = [&](std::size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
        std::size_t from = at, to = at;
        while (from > 0 && is_inside(from - 1)) --from;
        while (to < text.size() && is_inside(to)) ++to;
        text.replace(from, to - from, words[below(std::size(words))]);
        break;
      }
      default: {  // a line moves
        const std::size_t from = text.rfind('\n', at) + 1, to = std::min(text.find('\n', at), text.size() - 1) + 1;
        const std::string line = text.substr(from, to - from);
        text.erase(from, to - from);
        text.insert(text.empty() ? 0 : below(text.size()), line);
      }
    }
  }
  return text;
}

TEST(HostileImports, EverySourceHasASampleThatIsRead) {
  for (const ImportSource& source : import_sources()) {
    const fs::path sample = sample_of(source);
    ASSERT_FALSE(sample.empty()) << "no sample of " << source.name;
    EXPECT_FALSE(import_files(source, sample_request(source, sample)).out.empty()) << source.name;
  }
}

TEST(HostileImports, AreReadOrRefusedWithASentence) {
  const TemporaryFolder folder;
  constexpr int rounds = 60;
  for (const ImportSource& source : import_sources()) {
    const fs::path sample = sample_of(source);
    const std::string text = read_all(sample), path = folder / sample.filename();
    std::mt19937_64 random(11);
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
      std::ofstream(path, std::ios::binary) << damaged(text, random);
      try {
        import_files(source, sample_request(source, path));
      } catch (const InputError& error) {
        ++refused;
        EXPECT_GT(error.sentence().size(), 10U) << source.name << " " << round;
        EXPECT_FALSE(error.place().file.empty()) << source.name << " " << round << ": " << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << source.name << ", round " << round << ", is no refusal: " << error.what();
      }
    }
    EXPECT_GT(refused, 0) << source.name << ": no damage was noticed";
  }
}

}  // namespace
}  // namespace tandem::studies::interop_hostile_test
