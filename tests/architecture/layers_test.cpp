// What the folders' sources include holds the layers of docs/architecture.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tests/architecture/includes.h"

namespace tandem::architecture::layers_test {
namespace {

/// A folder includes itself and those of lower layers. Folders of one layer do not see each other.
const std::map<std::string, int> layers = {{"runtime", 0}, {"topology", 1}, {"traces", 1}, {"scenarios", 2},
                                           {"sim", 2},     {"studies", 3},  {"cli", 4}};

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& [name, layer] : layers) names.push_back(name);
  return names;
}

/// Whether sources of the folder `from` may include those of `to`. Nothing but tests includes tests.
bool may_include(const std::string& from, const std::string& to) {
  return from == to || (layers.contains(to) && layers.at(to) < layers.at(from));
}

/// viz/ has no sources but for what npm lays there; docs/ has examples for who installed the library.
TEST(Layers, HoldEveryFolderOfSources) {
  std::set<std::string> with_sources;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR)) {
    const std::string name = entry.path().filename();
    if (!entry.is_directory() || name.starts_with(".") || name.starts_with("build") || name == "tests" || name == "viz" ||
        name == "docs")
      continue;
    if (!includes_below({name}).empty()) with_sources.insert(name);
  }
  for (const std::string& name : with_sources) EXPECT_TRUE(layers.contains(name)) << name << " has no layer in layers_test.cpp";
}

TEST(Layers, NoFolderIncludesOneAboveIt) {
  for (const Include& include : includes_below(folders())) {
    const std::string from = top_folder(include.file), to = top_folder(include.target);
    if (!include.is_ours) continue;
    EXPECT_TRUE(may_include(from, to)) << include.place() << ": includes " << include.target << ", but " << from
                                       << "/ may see lower layers alone";
  }
}

TEST(Layers, OfTheRuntimeAreBaseThenOperationsThenTheDag) {
  const std::vector<std::string> lowest = {"runtime/base", "runtime/ops", "runtime/dag"};  // the rest of the runtime above them
  const auto layer_of = [&](const std::string& room) { return std::ranges::find(lowest, room) - lowest.begin(); };
  for (const Include& include : includes_below({"runtime"})) {
    const std::string from = room_of(include.file), to = room_of(include.target);
    if (!include.is_ours || from == to) continue;
    const bool both_above = layer_of(from) == std::ssize(lowest) && layer_of(to) == std::ssize(lowest);
    EXPECT_TRUE(both_above || layer_of(to) < layer_of(from))
        << include.place() << ": includes " << include.target << ", but " << from << " lies below " << to;
  }
}

TEST(Layers, NothingBelowTheProgramsKnowsOfCommandLines) {
  std::vector<std::string> below = folders();
  std::erase_if(below, [](const std::string& name) { return layers.at(name) >= layers.at("cli"); });
  for (const Include& include : includes_below(below)) {
    const std::string to = top_folder(include.target);
    EXPECT_TRUE(to != "CLI" && to != "cli" && to != "tests")
        << include.place() << ": includes " << include.target << ", but the libraries know neither command lines nor tests";
  }
}

/// What of the terminal a file of the programs can include.
bool is_of_the_terminal(const std::string& target) {
  static const std::set<std::string> system = {"iostream", "cstdio", "unistd.h", "termios.h", "sys/ioctl.h"};
  return target.starts_with("CLI/") || target == "cli/command.h" || target.starts_with("cli/terminal/") ||
         system.contains(target);
}

/// A library that grows inside the command line is what this is to prevent.
TEST(Layers, EachFileOfTheProgramsHasToDoWithTheTerminal) {
  std::map<std::string, bool> by_stem;  // a header and its source are one
  for (const Include& include : includes_below({"cli"}))
    by_stem[std::filesystem::path(include.file).replace_extension()] |= is_of_the_terminal(include.target);
  for (const auto& [stem, has_terminal] : by_stem)
    EXPECT_TRUE(has_terminal) << stem
                              << ": includes neither CLI11 nor cli/terminal nor the terminal, so it belongs into studies/";
}

/// Folders of tests by the highest layer that they may include; each sees that of its own name.
const std::map<std::string, std::string> layer_of_tests = {
    {"runtime", "runtime"}, {"topology", "topology"},  {"traces", "traces"},  {"scenarios", "scenarios"}, {"sim", "sim"},
    {"studies", "studies"}, {"end_to_end", "studies"}, {"cli", "cli"},        {"cuda", "studies"},        {"gpu", "studies"},
    {"nccl", "runtime"},    {"cudnn", "runtime"},      {"cublas", "runtime"}, {"fake_gpu", "runtime"},    {"fuzz", "studies"}};

/// "sim" of "tests/sim/tiled_device.h".
std::string folder_of_test(const std::string& file) { return top_folder(file.substr(file.find('/') + 1)); }

TEST(Layers, TestsIncludeTheirLayerAndThoseBelow) {
  for (const Include& include : includes_below({"tests"})) {
    const std::string from = folder_of_test(include.file);
    if (!include.is_ours || from == "architecture") continue;
    ASSERT_TRUE(layer_of_tests.contains(from)) << "tests/" << from << " has no layer in layers_test.cpp";
    const std::string& layer = layer_of_tests.at(from);
    const bool of_tests = top_folder(include.target) == "tests";
    const std::string of = of_tests ? folder_of_test(include.target) : top_folder(include.target);
    const bool helper = of_tests && (of == from || (layer_of_tests.contains(of) && may_include(layer, layer_of_tests.at(of))));
    EXPECT_TRUE(helper || (!of_tests && may_include(layer, of)))
        << include.place() << ": includes " << include.target << ", but tests/" << from << " may see " << layer
        << "/ and lower layers alone";
  }
}

}  // namespace
}  // namespace tandem::architecture::layers_test
