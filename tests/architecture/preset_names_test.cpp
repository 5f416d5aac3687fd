// Which GPUs, clusters and frameworks there are is data: no source names one, so that a new one is a file.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/architecture/includes.h"

namespace tandem::architecture::preset_names_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = TANDEM_SOURCE_DIR;

/// Where a name may stand, and why.
struct Exception {
  const char* name;
  const char* path;  ///< a file, or a folder with all below it
};
constexpr Exception exceptions[] = {
    {"generic", "runtime/dag/software.h"},              // no framework in particular
    {"dgx-h100", "cli"},                                // import's default, where a configuration does not say
    {"dgx-h100", "studies/calibrate"},                  // any would do: kernels are listed, not timed
    {"deepseek", "scenarios/reading/hf_families.cpp"},  // architectures: deepseek_v3
    {"deepseek", "scenarios/reading/hf_layers.cpp"},    // a layer type: deepseek_sparse_attention
};

/// But for `host`, a word that much else goes by.
std::set<std::string> preset_names() {
  std::set<std::string> names;
  for (const char* folder : {"gpus", "clusters", "frameworks"})
    for (const auto& entry : fs::directory_iterator(root / "scenarios/presets" / folder)) names.insert(entry.path().stem());
  names.erase("host");
  return names;
}

bool is_excepted(const std::string& name, const std::string& path) {
  for (const char* folder : {"scenarios/interop/", "studies/interop/"})  // which know other programs by name
    if (path.starts_with(folder)) return true;
  for (const Exception& exception : exceptions) {
    const std::string where = exception.path;
    if (name == exception.name && (path == where || path.starts_with(where + "/"))) return true;
  }
  return false;
}

/// The lines of a source without comments; what follows `//` inside a text is lost, too.
std::vector<std::string> code_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line.substr(0, line.find("//")));
  return lines;
}

/// What stands between the quotes of a line, names of included files apart.
std::string quoted(const std::string& line) {
  std::string texts;
  bool inside = false;
  if (line.starts_with("#include")) return texts;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) inside = !inside;
    texts += inside ? line[i] : '"';
  }
  return texts;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto goes_on = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-' || text[at] == '.');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !goes_on(at - 1)) && !goes_on(at + word.size())) return true;
  return false;
}

TEST(PresetNames, StandInNoSource) {
  const std::set<std::string> names = preset_names();
  ASSERT_TRUE(names.contains("h100-sxm-80gb"));
  const std::vector<std::string> sources = sources_below(code_folders);
  EXPECT_GT(sources.size(), 500U);
  for (const std::string& path : sources) {
    int number = 0;
    for (const std::string& line : code_lines(root / path)) {
      ++number;
      const std::string texts = quoted(line);
      for (const std::string& name : names)
        EXPECT_TRUE(!has_word(texts, name) || is_excepted(name, path)) << path << ":" << number << " names the preset " << name;
    }
  }
}

}  // namespace
}  // namespace tandem::architecture::preset_names_test
