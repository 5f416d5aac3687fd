#include "studies/report/task_pairs.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/analysis/kinds.h"
#include "runtime/base/divide_up.h"

namespace tandem::studies {

nlohmann::ordered_json task_pairs(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  constexpr std::int64_t most = 20'000;
  std::map<std::string, std::vector<TaskId>> by_kind;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) by_kind[kind_of(dag, id)].push_back(id);
  const auto stride = static_cast<std::size_t>(divide_up(static_cast<std::int64_t>(dag.tasks.size()), most));

  std::vector<std::string> kinds;
  std::vector<std::size_t> kind;
  std::vector<Seconds> simulated_s, measured_s;
  for (const auto& [name, tasks] : by_kind) {
    for (std::size_t i = 0; i < tasks.size(); i += stride) {
      kind.push_back(kinds.size());
      simulated_s.push_back(simulated.duration(tasks[i]));
      measured_s.push_back(measured.duration(tasks[i]));
    }
    kinds.push_back(name);
  }
  return {{"kind", kind}, {"simulated_s", simulated_s}, {"measured_s", measured_s}, {"kinds", kinds}};
}

}  // namespace tandem::studies
