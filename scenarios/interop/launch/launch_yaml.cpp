#include <sstream>
#include <utility>

#include "scenarios/interop/launch/launch.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {
namespace {

constexpr const char* arguments_key = "MODEL_ARGS";

/// Words between blanks; quotes hold some together.
std::vector<std::string> words_of_value(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = '\0';
  bool begun = false;
  for (const char c : text) {
    if (quote != '\0' ? c == quote : (c == '"' || c == '\'')) {
      quote = quote != '\0' ? '\0' : c;
      begun = true;
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::exchange(word, ""));
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

}  // namespace

bool has_model_args(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(std::string(arguments_key) + ":")) return true;
  return false;
}

/// megatron/../tests/functional_tests/shell_test_utils/run_ci_test.sh makes arguments of it: true is a flag, and false none.
Launch read_yaml_launch(const ForeignText& from) {
  const YamlNode document = parse_yaml(from.text, from.file);
  std::vector<std::pair<std::string, shell::Text>> variables;
  if (const YamlNode* environment = document.find("ENV_VARS"); environment != nullptr)
    for (const YamlNode::Entry& entry : environment->entries)
      if (entry.value.kind == YamlNode::Kind::scalar && entry.value.text.find('$') == std::string::npos)
        variables.push_back({entry.key, {entry.value.text, entry.value.place}});
  shell::TextExpander expander(from.environment, variables);
  const YamlNode* const found = document.find(arguments_key);
  const YamlNode& arguments = found == nullptr ? document : *found;
  if (found == nullptr || arguments.kind != YamlNode::Kind::mapping)
    throw InputError(arguments.place, "MODEL_ARGS is no mapping, expected arguments with their values, as in --num-layers: 32");
  Launch launch;
  const auto add_value = [&](const YamlNode& value) {
    if (value.kind != YamlNode::Kind::scalar)
      throw InputError(value.place, "the value of an argument is neither text, number nor a list of them, expected one");
    for (const std::string& word : words_of_value(expander.expand(value.text, value.place)))
      launch.words.push_back({word, value.place});
  };
  for (const YamlNode::Entry& entry : arguments.entries) {
    if (!entry.key.starts_with("--"))
      throw InputError(entry.place, entry.key + " in MODEL_ARGS is no argument, expected one such as --num-layers");
    const YamlNode& value = entry.value;
    const bool is_flag = value.kind == YamlNode::Kind::null || (!value.quoted && value.text == "true");
    if (value.kind == YamlNode::Kind::scalar && value.text == "false") continue;
    launch.words.push_back({entry.key, entry.place});
    if (is_flag) continue;
    if (value.kind == YamlNode::Kind::sequence) {
      for (const YamlNode& item : value.items) add_value(item);
    } else {
      add_value(value);
    }
  }
  shell::Evaluated evaluated = expander.take();
  launch.unknowns = std::move(evaluated.unknowns);
  launch.assumed = std::move(evaluated.assumed);
  return launch;
}

}  // namespace tandem::scenarios
