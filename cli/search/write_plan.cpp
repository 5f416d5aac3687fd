#include "cli/search/write_plan.h"

#include <filesystem>

#include "scenarios/document.h"
#include "traces/output_file.h"

namespace tandem {
namespace {

constexpr std::size_t longest_line = 110;

void add_block(const YamlNode& node, std::size_t indent, std::string& text) {
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string line = std::string(indent, ' ') + entry.key + ":";
    const std::string value = to_yaml(entry.value);
    const bool fits = line.size() + 1 + value.size() <= longest_line;
    if (entry.value.kind != YamlNode::Kind::mapping || (fits && indent > 0)) {
      text += line + " " + value + "\n";
    } else {
      text += line + "\n";
      add_block(entry.value, indent + 2, text);
    }
  }
}

}  // namespace

std::string to_block_yaml(const YamlNode& document) {
  std::string text;
  add_block(document, 0, text);
  return text;
}

void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder) {
  std::filesystem::create_directories(folder);
  OutputFile file(folder + "/scenario.yaml");
  file.write("# " + to_text(plan, choices) + "\n" + to_block_yaml(document_of(plan, choices, spec)));
  file.commit();
}

}  // namespace tandem
