#include "studies/runner/step_process.h"

#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/base/progress.h"
#include "sim/child_process.h"
#include "sim/fluid_network.h"
#include "studies/runner/memory_file.h"
#include "studies/runner/step_failure.h"

namespace tandem::studies {

StepResult result_from_child(const Scenario& scenario, bool folded, const SimulationOptions& options,
                             const Stopwatch& stopwatch) {
  SimulationOptions of_child = options;
  of_child.ends_process = true;
  const MemoryFile output;
  sim::run_in_child([&] {
    const auto take_away = [](Progress* shown) { shown->take_away(); };
    const std::unique_ptr<Progress, decltype(take_away)> shown(options.progress, take_away);  // by the child, which knows of it
    // Beside lowering, where there may be another thread.
    const std::future<void> opened = sim::open_simgrid_beside();
    try {
      output.write(to_json(simulate_in_full(scenario, folded, of_child, stopwatch).result));
    } catch (const InputError&) {  // has a place, which the sentence of a child's exception has not
      output.write(to_json(failure_of_exception()));
    }
  });
  const auto json = nlohmann::ordered_json::parse(output.read());
  if (!json.contains("failure")) return step_result_from_json(json, "its process");
  const Failure failure = failure_from_json(json);
  throw InputError(failure.place, failure.sentence);
}

}  // namespace tandem::studies
