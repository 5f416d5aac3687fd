// What the Markdown files promise: links lead somewhere, and the README stays a front page.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::architecture::documents_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = TANDEM_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> markdown_files() {
  const std::set<std::string> skipped{"build", "node_modules", "out", ".git"};
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    if (at->is_directory() && skipped.contains(at->path().filename().string()))
      at.disable_recursion_pending();
    else if (at->path().extension() == ".md")
      files.push_back(at->path());
  }
  return files;
}

/// Without code, in which brackets are no links.
std::string prose_of(const fs::path& path) {
  std::istringstream text(text_of(path));
  std::string prose;
  bool in_code = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) in_code = !in_code;
    if (!in_code && !line.starts_with("    ")) prose += line + "\n";
  }
  return prose;
}

/// Where `[words](target)` and `![words](target)` lead, but for those to other machines.
std::vector<std::string> targets_in(const fs::path& path) {
  std::vector<std::string> targets;
  const std::string prose = prose_of(path);
  const std::regex link("\\]\\(([^)\\s]+)\\)");
  for (auto match = std::sregex_iterator(prose.begin(), prose.end(), link); match != std::sregex_iterator(); ++match)
    if (const std::string target = (*match)[1]; target.find("://") == std::string::npos) targets.push_back(target);
  return targets;
}

/// What GitHub makes of a heading: small letters, no punctuation, hyphens for spaces.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_in(const fs::path& path) {
  std::set<std::string> anchors;
  std::istringstream prose(prose_of(path));
  for (std::string line; std::getline(prose, line);)
    if (line.starts_with("#")) anchors.insert(anchor_of(line.substr(std::min(line.find(' ') + 1, line.size()))));
  return anchors;
}

TEST(Documents, HaveNoLinkThatLeadsNowhere) {
  std::size_t links = 0;
  for (const fs::path& file : markdown_files()) {
    for (const std::string& target : targets_in(file)) {
      const std::size_t hash = std::min(target.find('#'), target.size());
      const fs::path to = hash == 0 ? file : file.parent_path() / target.substr(0, hash);
      EXPECT_TRUE(fs::exists(to)) << fs::relative(file, root) << " links to " << target;
      if (hash < target.size() && to.extension() == ".md") {
        EXPECT_TRUE(anchors_in(to).contains(target.substr(hash + 1))) << fs::relative(file, root) << " links to " << target;
      }
      ++links;
    }
  }
  EXPECT_GT(links, 100U);
}

TEST(Documents, HaveAReadmeThatIsAFrontPage) { EXPECT_LE(fs::file_size(root / "README.md"), 8'192U); }

/// What lives in the folder, its way in and its way out; the rest is for docs/.
TEST(Documents, HaveAShortReadmeInEachFolder) {
  for (const char* folder :
       {"bench", "cli", "cmake", "python", "runtime", "scenarios", "sim", "studies", "tests", "topology", "traces", "viz"})
    EXPECT_TRUE(fs::exists(root / folder / "README.md")) << folder;
  for (const fs::path& file : markdown_files()) {
    if (file.filename() != "README.md" || file.parent_path() == root) continue;
    EXPECT_LE(fs::file_size(file), 3'072U) << fs::relative(file, root) << " is to say it in ten lines, and docs/ the rest";
  }
}

}  // namespace
}  // namespace tandem::architecture::documents_test
