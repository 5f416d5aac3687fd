#include "scenarios/checks/checks.h"

namespace tandem::scenarios {
namespace {

/// How likely the field at `path` is what the user has just changed.
int suspicion(const YamlNode& document, std::string_view path) {
  const YamlNode* node = find_path(document, path);
  if (node == nullptr) return 0;
  if (node->place.file.starts_with("--set")) return 3;
  return node->place.file == document.place.file ? 2 : 1;
}

}  // namespace

Place culprit(const YamlNode& document, std::initializer_list<std::string_view> paths) {
  std::string_view latest = *paths.begin();
  for (const std::string_view path : paths)
    if (suspicion(document, path) > suspicion(document, latest)) latest = path;
  return place_of(document, latest);
}

void refuse(const YamlNode& document, std::initializer_list<std::string_view> paths, const std::string& sentence) {
  throw InputError(culprit(document, paths), sentence);
}

}  // namespace tandem::scenarios
