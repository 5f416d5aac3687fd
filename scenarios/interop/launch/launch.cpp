#include "scenarios/interop/launch/launch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/base/nearest.h"

namespace tandem::scenarios {
namespace {

/// Arguments that say what is trained and how: a command with some of them trains.
constexpr std::array telling_arguments = {"--num-layers",
                                          "--hidden-size",
                                          "--num-attention-heads",
                                          "--ffn-hidden-size",
                                          "--seq-length",
                                          "--micro-batch-size",
                                          "--global-batch-size",
                                          "--tensor-model-parallel-size",
                                          "--pipeline-model-parallel-size",
                                          "--num-experts",
                                          "--train-iters",
                                          "--train-samples"};

std::string argument_name(const std::string& word) { return word.substr(0, word.find('=')); }

int tells(const std::vector<shell::Text>& words) {
  return static_cast<int>(std::ranges::count_if(words, [](const shell::Text& word) {
    return std::ranges::find(telling_arguments, argument_name(word.text)) != telling_arguments.end();
  }));
}

/// "--fp8-format hybrid" as one word of an array is meant as two.
std::vector<shell::Text> split_arguments(std::vector<shell::Text> words) {
  std::vector<shell::Text> all;
  for (shell::Text& word : words) {
    if (!word.text.starts_with("--") || word.text.find_first_of(" \t\n") == std::string::npos) {
      all.push_back(std::move(word));
      continue;
    }
    std::istringstream parts(word.text);
    for (std::string part; parts >> part;) {
      if (part.size() > 1 && (part.front() == '\'' || part.front() == '"') && part.back() == part.front())
        part = part.substr(1, part.size() - 2);
      all.push_back({part, word.place});
    }
  }
  return all;
}

std::string program_name(const std::string& word) { return std::filesystem::path(word).filename().string(); }

/// The last file of Python before the first argument that tells something.
std::size_t program_index(const std::vector<shell::Text>& words) {
  std::size_t found = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::ranges::find(telling_arguments, argument_name(words[i].text)) != telling_arguments.end()) break;
    if (words[i].text.ends_with(".py")) found = i;
  }
  return found;
}

class GpuCount {
 public:
  explicit GpuCount(const shell::Unknowns& unknowns) : unknowns_(unknowns) {}

  /// Launchers' options: of torchrun, DeepSpeed, srun and slime.
  void read(const std::vector<shell::Text>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string name = argument_name(words[i].text);
      std::ranges::replace(name, '_', '-');
      const std::size_t equals = words[i].text.find('=');
      const std::string value = equals != std::string::npos ? words[i].text.substr(equals + 1)
                                : i + 1 < words.size()      ? words[i + 1].text
                                                            : "";
      for (const char* of_nodes : {"--nnodes", "--num-nodes", "--nodes", "-N", "--actor-num-nodes"})
        if (name == of_nodes) take(nodes_, value, words[i]);
      for (const char* of_gpus : {"--nproc-per-node", "--num-gpus", "--gpus-per-node", "--actor-num-gpus-per-node"})
        if (name == of_gpus) take(per_node_, value, words[i]);
    }
  }

  void write(Launch& launch) const {
    if (!per_node_ || (has_nodes_ && !nodes_)) return;
    launch.gpus = *per_node_ * nodes_.value_or(1);
    launch.gpus_place = place_;
    launch.gpus_stated = stated_;
  }

 private:
  const shell::Unknowns& unknowns_;
  std::optional<std::int64_t> nodes_, per_node_;
  bool has_nodes_ = false;
  Place place_;
  std::string stated_;

  void take(std::optional<std::int64_t>& into, const std::string& value, const shell::Text& word) {
    constexpr std::int64_t most = 1'048'576;
    if (&into == &nodes_) has_nodes_ = true;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    into.reset();
    if (error != std::errc{} || end != value.data() + value.size() || number < 1 || number > most) return;
    into = number;
    place_ = word.place;
    stated_ += (stated_.empty() ? "" : ", ") + unknowns_.readable(argument_name(word.text)) + " " + value;
  }
};

bool is_argument_list(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    return line.substr(begin).starts_with("--");
  }
  return false;
}

/// Those of the command that tells most; of several, the first.
const shell::Started* training_command(const shell::Evaluated& script, Launch& launch) {
  const shell::Started* best = nullptr;
  for (const shell::Started& one : script.started)
    if (tells(one.words) > (best == nullptr ? 0 : tells(best->words))) best = &one;
  if (best == nullptr) return nullptr;
  const auto texts = [](const shell::Started& one) {
    std::vector<std::string> all;
    for (const shell::Text& word : one.words) all.push_back(word.text);
    return all;
  };
  std::int64_t others = 0;
  for (const shell::Started& one : script.started)
    if (tells(one.words) == tells(best->words) && texts(one) != texts(*best)) ++others;
  if (others > 0)
    launch.notes.push_back(best->place.text() + ": this command is read, and not " + std::to_string(others) +
                           " others that start training with other arguments");
  if (!best->condition.empty())
    launch.assumed.push_back("that training is started in line " + std::to_string(best->place.line) + ", though it depends on " +
                             best->condition);
  return best;
}

/// Of a file that only sets variables, for others to read: the arguments in them.
std::vector<shell::Text> arguments_in_variables(const shell::Evaluated& script, Launch& launch) {
  std::vector<shell::Text> words;
  std::string names;
  for (const std::string& name : script.variables.order()) {
    const shell::Variable* variable = script.variables.find(name);
    if (variable == nullptr || script.variables.is_given(name)) continue;
    std::vector<shell::Text> items;
    for (const shell::Text& item : variable->items) {
      if (variable->is_array) {
        items.push_back(item);
        continue;
      }
      std::istringstream parts(item.text);
      for (std::string part; parts >> part;) items.push_back({part, item.place});
    }
    if (items.empty() || !items.front().text.starts_with("--")) continue;
    names += (names.empty() ? "" : ", ") + name;
    words.insert(words.end(), items.begin(), items.end());
  }
  if (tells(words) == 0) return {};
  launch.assumed.push_back("that the arguments are those in " + names + ", as no command of the script starts training");
  return words;
}

}  // namespace

Launch read_launch(const ForeignText& from) {
  if (has_model_args(from.text)) return read_yaml_launch(from);
  std::vector<std::string> given(from.environment.begin(), from.environment.end());
  const bool is_list = is_argument_list(from.text);
  Launch launch;
  for (const std::string& variable : is_list ? std::vector<std::string>{} : slurm_variables(from.text)) {
    const auto same = [&](const std::string& one) { return one.starts_with(variable.substr(0, variable.find('=') + 1)); };
    if (std::ranges::none_of(given, same)) given.push_back(variable);
  }
  shell::Evaluated script =
      is_list ? shell::evaluate_arguments(from.text, from.file, given) : shell::evaluate_script(from.text, from.file, given);
  launch.unknowns = script.unknowns;
  launch.missing = script.missing;
  const shell::Started* command = is_list ? &script.started.front() : training_command(script, launch);
  std::vector<shell::Text> words = split_arguments(command != nullptr ? command->words : arguments_in_variables(script, launch));
  if (words.empty()) {
    std::string why;
    if (!script.ended.empty()) why = ": " + script.ended;
    if (why.empty() && !script.missing.empty()) why = ": " + script.missing.front();
    throw InputError({.file = from.file}, "no command of the script starts training" + why +
                                              "; expected one such as torchrun pretrain_gpt.py --num-layers 32");
  }
  launch.assumed.insert(launch.assumed.end(), script.assumed.begin(), script.assumed.end());
  GpuCount gpus(launch.unknowns);
  gpus.read(words);
  gpus.write(launch);
  const std::size_t program = program_index(words);
  if (program < words.size()) {
    launch.program = program_name(words[program].text);
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(program) + 1);
  }
  launch.words = std::move(words);
  return launch;
}

}  // namespace tandem::scenarios
