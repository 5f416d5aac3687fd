#include "studies/step/verification.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/backend_names.h"
#include "scenarios/mesh/expert_mesh.h"

namespace tandem::studies {

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
  reference.training.offload = {};
  reference.training.global_batch = scenario.training.gradient_batch(scenario.parallelism);
  reference.training.sync_every = 1;
  ClusterSpec& cluster = reference.cluster;
  cluster.gpus = 1;
  cluster.nics_per_node = 0;
  cluster.pcie = {};
  cluster.host = {};
  cluster.fabric = {};
  cluster.link_faults.clear();
  cluster.other_gpus.clear();
  reference.slow_gpus.clear();
  return reference;
}

StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario, Progress* progress) {
  const Scenario reference = unsharded(scenario);
  const std::int64_t replicas = scenario.training.global_batch / reference.training.global_batch;
  std::deque<ExecutedStep> runs;
  std::vector<const HostMemory*> memories;
  for (std::int64_t replica = 0; replica < replicas; ++replica) {
    StepRange steps = period_of(scenario);
    steps.first_sequence = replica * reference.training.global_batch;
    steps.stride = scenario.training.global_batch;
    runs.emplace_back(reference, scenario.name, ExecutionChoice{}, steps).execute(progress, "executing the unsharded model");
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

Verification verify(const ExecutedStep& step, const Scenario& scenario, Progress* progress) {
  const DType precision = step.result().run.backend == cuda_backend ? step.precision() : DType::f32;
  return {.tolerance = verification_tolerance(precision), .difference = compare_with_unsharded(step, scenario, progress)};
}

}  // namespace tandem::studies
