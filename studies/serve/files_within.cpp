#include "studies/serve/files_within.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"

namespace tandem::studies {
namespace {

namespace fs = std::filesystem;

class NamedFiles {
 public:
  explicit NamedFiles(const fs::path& folder) : root_(fs::canonical(folder)) {}

  void look_at(const YamlNode& node, const fs::path& beside) {
    if (node.kind == YamlNode::Kind::scalar) look_at_text(node, beside);
    for (const YamlNode& item : node.items) look_at(item, beside);
    for (const YamlNode::Entry& entry : node.entries) look_at(entry.value, beside);
  }

 private:
  fs::path root_;
  std::set<fs::path> seen_;

  [[noreturn]] static void refuse(const YamlNode& node) {
    throw InputError(node.place, excerpt(node.text) + " may lie outside the served folder, expected a file of that folder");
  }

  bool is_within(const fs::path& canonical) const { return std::ranges::mismatch(root_, canonical).in1 == root_.end(); }

  void look_at_text(const YamlNode& node, const fs::path& beside) {
    const fs::path named(node.text);
    if (named.empty()) return;
    const bool climbs = std::ranges::find(named, fs::path("..")) != named.end();
    if (named.is_absolute() || (climbs && !is_within((beside / named).lexically_normal()))) refuse(node);
    std::error_code error;
    const fs::path canonical = fs::canonical(beside / named, error);
    if (error) return;  // no such file: whoever reads it says so
    if (!is_within(canonical)) refuse(node);
    if (fs::is_regular_file(canonical, error) && seen_.insert(canonical).second) look_inside(canonical);
  }

  /// Presets are YAML, models may be JSON, which is YAML; profiles and topologies name no files.
  void look_inside(const fs::path& file) {
    const fs::path kind = file.extension();
    if (kind != ".yaml" && kind != ".yml" && kind != ".json") return;
    YamlNode document;
    try {
      document = parse_yaml(read_text_file(file.string(), a_scenario), file.string());
    } catch (const InputError&) {
      return;  // whoever needs it says what is wrong
    }
    look_at(document, file.parent_path());
  }
};

}  // namespace

void refuse_files_outside(const YamlNode& document, const std::filesystem::path& folder) {
  const fs::path root = fs::canonical(folder);
  NamedFiles(root).look_at(document, root);
}

}  // namespace tandem::studies
