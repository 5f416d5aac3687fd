#include "scenarios/reading/placement_file.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "runtime/base/text_file.h"
#include "scenarios/reading/reader.h"

namespace tandem::scenarios {

void read_placement_file(YamlNode& scenario, const std::string& folder) {
  YamlNode* parallelism = scenario.find("parallelism");
  YamlNode* placement = parallelism == nullptr ? nullptr : parallelism->find("placement");
  if (placement == nullptr || placement->kind != YamlNode::Kind::mapping) return;
  const Reader reader(*placement, "parallelism.placement", {"file"});
  const std::string path = (std::filesystem::path(folder) / reader.text("file")).string();
  std::istringstream lines(read_text_file(path, "a list of GPU numbers"));
  YamlNode list = make_node(YamlNode::Kind::sequence, placement->place);
  std::string text;
  for (int line = 1; std::getline(lines, text); ++line) {
    std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos || text[first] == '#') continue;
    if (text.compare(first, 2, "- ") == 0) first = text.find_first_not_of(" \t\r", first + 1);
    if (first == std::string::npos) first = text.find('-');
    const std::size_t last = text.find_last_not_of(" \t\r");
    list.items.push_back(make_scalar(text.substr(first, last + 1 - first), {path, line, static_cast<int>(first) + 1}));
  }
  *placement = std::move(list);
}

}  // namespace tandem::scenarios
