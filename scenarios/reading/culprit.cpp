#include "scenarios/reading/culprit.h"

#include "scenarios/checks/warnings.h"

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

Place culprit(const YamlNode& document, const std::vector<std::string>& fields) {
  std::string_view latest = fields.front();
  for (const std::string_view field : fields)
    if (suspicion(document, field) > suspicion(document, latest)) latest = field;
  return place_of(document, latest);
}

void refuse(const YamlNode& document, const Objection& objection) {
  throw InputError(culprit(document, objection.fields), objection.sentence);
}

std::vector<std::string> find_warnings(const Scenario& scenario, const YamlNode& document) {
  std::vector<std::string> sentences;
  for (const Warning& warning : unwise_in(scenario))
    sentences.push_back(culprit(document, warning.fields).text() + ": " + warning.sentence);
  return sentences;
}

}  // namespace tandem::scenarios
