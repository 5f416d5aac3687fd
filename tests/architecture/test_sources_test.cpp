// Several sources of tests are one unit for the compiler, so each needs a namespace of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tandem::architecture::test_sources_test {
namespace {

TEST(TestSources, HaveANamespaceOfTheirOwn) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TANDEM_SOURCE_DIR "/tests")) {
    const std::filesystem::path& file = entry.path();
    if (!file.string().ends_with("_test.cpp")) continue;
    const std::string own = "::" + file.stem().string() + " {";
    bool opened = false;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("namespace tandem")) opened = line.ends_with(own);
      const bool outside = line.starts_with("namespace {") || line.starts_with("using ") || line.starts_with("TEST");
      ASSERT_TRUE(opened || !outside) << file.string() << ": expected `namespace tandem::..." << own << "` before " << line;
    }
    EXPECT_TRUE(opened) << file.string() << ": expected `namespace tandem::..." << own << "`";
  }
}

}  // namespace
}  // namespace tandem::architecture::test_sources_test
