#include "studies/step/verification.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <ostream>
#include <vector>

#include "cli/terminal/page.h"
#include "scenarios/mesh/expert_mesh.h"

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
  reference.training.global_batch = scenario.training.gradient_batch(scenario.parallelism);
  reference.training.sync_every = 1;
  ClusterSpec& cluster = reference.cluster;
  cluster.gpus = 1;
  cluster.nics_per_node = 0;
  cluster.pcie = {};
  cluster.fabric = {};
  cluster.link_faults.clear();
  cluster.other_gpus.clear();
  reference.slow_gpus.clear();
  return reference;
}

StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario, ProgressBar* bar) {
  const Scenario reference = unsharded(scenario);
  const std::int64_t replicas = scenario.training.global_batch / reference.training.global_batch;
  std::deque<ExecutedStep> runs;
  std::vector<const HostMemory*> memories;
  for (std::int64_t replica = 0; replica < replicas; ++replica) {
    StepRange steps = period_of(scenario);
    steps.first_sequence = replica * reference.training.global_batch;
    steps.stride = scenario.training.global_batch;
    runs.emplace_back(reference, scenario.name, BackendOptions{}, steps).execute(bar, "executing the unsharded model");
    memories.push_back(&runs.back().memory());
  }
  return compare(step.memory(), memories);
}

bool VerificationTolerance::allows(const StepDifference& difference) const {
  return difference.loss <= rest && std::ranges::all_of(difference.tensors, [this](const TensorDifference& tensor) {
           return tensor.gradient <= gradients && tensor.weight <= rest;
         });
}

VerificationTolerance verification_tolerance(DType precision) {
  constexpr double roundings = 16, of_bf16 = 0x1p-8, of_fp16 = 0x1p-11;
  switch (precision) {
    case DType::bf16:
      return {.gradients = roundings * of_bf16, .rest = 2e-2};
    case DType::f16:
      return {.gradients = roundings * of_fp16, .rest = roundings * of_fp16};
    case DType::f8:  // e4m3 in the GEMMs alone, 2^-4 of each operand
      return {.gradients = 0.5, .rest = 0.5};
    default:
      return {.gradients = 1e-4, .rest = 1e-4};
  }
}

ExitCode report_verification(const ExecutedStep& step, const Scenario& scenario, std::ostream& out, const Screen& screen,
                             ProgressBar* bar) {
  const VerificationTolerance tolerance =
      verification_tolerance(step.result().run.backend == "cuda" ? step.precision() : DType::f32);
  const StepDifference difference = compare_with_unsharded(step, scenario, bar);
  if (bar != nullptr) bar->take_away();
  const auto text_of = [](double value) { return TextCell{fmt::format("{:.2e}", value)}; };
  Table table({{"tensor", Column::Kind::name}, {"gradient"}, {"weight"}});
  for (const TensorDifference& tensor : difference.tensors)
    table.add({{tensor.tensor}, text_of(tensor.gradient), text_of(tensor.weight)});
  const bool same = tolerance.allows(difference);
  const std::string allowed = tolerance.gradients == tolerance.rest
                                  ? fmt::format("allowed {:.0e}", tolerance.rest)
                                  : fmt::format("allowed {:.0e}, of gradients {:.0e}", tolerance.rest, tolerance.gradients);
  out << Page(screen)
             .heading(fmt::format("Against the unsharded model (loss {:.6f}), largest relative differences",
                                  difference.reference_loss))
             .line(fmt::format("loss {:.2e}", difference.loss), Style::plain, 2)
             .table(table)
             .line(fmt::format("{}: largest {:.2e}, {}", same ? "the same step" : "NOT the same step", difference.largest(),
                               allowed),
                   same ? Style::green : Style::red)
             .text();
  return same ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem
