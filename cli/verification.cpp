#include "cli/verification.h"

#include <spdlog/fmt/fmt.h>

#include <ostream>

#include "runtime/host/compare.h"
#include "scenarios/expert_mesh.h"

namespace tandem {

Scenario unsharded(const Scenario& scenario) {
  Scenario reference = scenario;
  ParallelismSpec p;
  p.zero = 0;
  p.order = scenario.parallelism.order;
  if (scenario.model.moe.experts > 0) {
    p.reference_token_groups = scenario.parallelism.cp * scenario.parallelism.tp;
    if (scenario.parallelism.cp > 1 && scenario.parallelism.cp_layout == CpLayout::zigzag)
      p.reference_zigzag = scenario.parallelism.cp;
    p.reference_expert_nodes = expert_nodes(scenario);
  }
  reference.parallelism = p;
  reference.training.schedule = ScheduleKind::one_f_one_b;
  reference.training.recompute = {};
  reference.training.hierarchical_all_reduce = false;
  reference.cluster.gpus = 1;
  reference.slow_gpus.clear();
  return reference;
}

ExitCode report_verification(const HostStep& step, const Scenario& scenario, std::ostream& out) {
  constexpr double tolerance = 1e-4;
  HostStep reference(unsharded(scenario), scenario.name);
  reference.execute();
  const StepDifference difference = compare(step.memory(), reference.memory());
  out << fmt::format("\nAgainst the unsharded model (loss {:.6f}), largest relative differences\n  loss {:.2e}\n",
                     difference.reference_loss, difference.loss);
  out << fmt::format("  {:<34}{:>12}{:>12}\n", "tensor", "gradient", "weight");
  for (const TensorDifference& tensor : difference.tensors) {
    out << fmt::format("  {:<34}{:>12.2e}{:>12.2e}\n", tensor.tensor, tensor.gradient, tensor.weight);
  }
  const bool same = difference.largest() <= tolerance;
  out << fmt::format("{}: largest {:.2e}, allowed {:.0e}\n", same ? "the same step" : "NOT the same step", difference.largest(),
                     tolerance);
  return same ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem
