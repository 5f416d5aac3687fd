#include "scenarios/validate.h"

namespace tandem {
namespace {

/// How likely the field at `path` is what the user has just changed.
int suspicion(const YamlNode& document, std::string_view path) {
  const YamlNode* node = find_path(document, path);
  if (node == nullptr) return 0;
  if (node->place.file.starts_with("--set")) return 3;
  return node->place.file == document.place.file ? 2 : 1;
}

}  // namespace

void refuse(const YamlNode& document, std::initializer_list<std::string_view> paths, const std::string& sentence) {
  std::string_view culprit = *paths.begin();
  for (const std::string_view path : paths)
    if (suspicion(document, path) > suspicion(document, culprit)) culprit = path;
  throw InputError(place_of(document, culprit), sentence);
}

}  // namespace tandem
