#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "scenarios/interop/launch/launch.h"

namespace tandem::scenarios {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) return {};
  return value;
}

/// The value of `--name=value`, `--name value` or `-n value` in a directive.
std::string directive_value(const std::string& directive, std::string_view name) {
  std::istringstream words(directive);
  std::string word;
  while (words >> word) {
    if (word == name) {
      words >> word;
      return word;
    }
    if (word.starts_with(std::string(name) + "=")) return word.substr(name.size() + 1);
  }
  return {};
}

}  // namespace

std::vector<std::string> slurm_variables(const std::string& script) {
  std::optional<std::int64_t> nodes, gpus, tasks;
  std::istringstream lines(script);
  std::string line;
  const auto take = [](std::optional<std::int64_t>& into, const std::string& value) {
    if (const auto number = whole_number(value.substr(value.rfind(':') == std::string::npos ? 0 : value.rfind(':') + 1)))
      into = number;
  };
  while (std::getline(lines, line)) {
    if (!line.starts_with("#SBATCH")) continue;
    for (const char* name : {"--nodes", "-N"}) take(nodes, directive_value(line, name));
    for (const char* name : {"--gpus-per-node", "--gres"}) take(gpus, directive_value(line, name));
    take(tasks, directive_value(line, "--ntasks-per-node"));
  }
  std::vector<std::string> variables;
  const auto add = [&](const char* name, const std::optional<std::int64_t>& value) {
    if (value) variables.push_back(std::string(name) + "=" + std::to_string(*value));
  };
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) add(name, nodes);
  for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}) add(name, gpus);
  add("SLURM_NTASKS_PER_NODE", tasks);
  if (nodes && tasks) add("SLURM_NTASKS", *nodes * *tasks);
  return variables;
}

}  // namespace tandem::scenarios
