#include "studies/step/verification.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/backend_names.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/spec/names.h"

namespace tandem::studies {

Scenario unsharded(const Scenario& scenario) {
  Scenario reference = scenario;
  ParallelismSpec p;
  p.zero = 0;
  p.order = scenario.parallelism.order;
  if (scenario.model.moe.experts > 0) {
    p.reference_token_groups = scenario.parallelism.cp * scenario.parallelism.tp;
    if (scenario.parallelism.has_zigzag_chunks()) p.reference_zigzag = scenario.parallelism.cp;
    p.reference_expert_nodes = expert_nodes(scenario);
  }
  if (scenario.training.muon_tp == MuonTp::blockwise) {
    p.reference_tp = scenario.parallelism.tp;
    p.reference_etp = scenario.parallelism.etp;
  }
  reference.parallelism = p;
  reference.training.schedule = ScheduleKind::one_f_one_b;
  reference.training.recompute = {};
  reference.training.hierarchical_all_reduce = false;
  reference.training.offload = {};
  reference.training.param_gather = false;
  reference.training.compressor = {};
  reference.training.global_batch = scenario.training.gradient_batch(scenario.parallelism);
  reference.training.sync_every = 1;
  reference.training.documents.reference = {.batch = scenario.training.global_batch,
                                            .run = scenario.training.global_batch / scenario.parallelism.data_replicas(),
                                            .parts = scenario.document_parts(),
                                            .dynamic_ranks = scenario.parallelism.dynamic_cp ? scenario.parallelism.cp : 0};
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

namespace {

/// The unsharded model's runs, one for each replica that takes steps of its own.
class UnshardedRuns {
 public:
  /// On a host, whose casts round if `rounds`.
  UnshardedRuns(const Scenario& scenario, bool rounds, Progress* progress) {
    const Scenario reference = unsharded(scenario);
    const std::int64_t replicas = scenario.training.global_batch / reference.training.global_batch;
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      StepRange steps = period_of(scenario);
      steps.first_sequence = replica * reference.training.global_batch;
      steps.stride = scenario.training.global_batch;
      runs_.emplace_back(reference, scenario.name, ExecutionChoice{.rounds = rounds}, steps)
          .execute(progress, "executing the unsharded model");
      memories_.push_back(&runs_.back().memory());
    }
  }
  StepDifference compared_with(const ExecutedStep& step) const { return compare(step.memory(), memories_); }

 private:
  std::deque<ExecutedStep> runs_;
  std::vector<const HostMemory*> memories_;
};

/// Compares the step, or where ranks hold gradients back the step that adds their residuals to what it applies.
StepDifference compare_restored(const UnshardedRuns& runs, const ExecutedStep& step, const Scenario& scenario,
                                Progress* progress) {
  if (!scenario.training.compressor.keeps_residuals()) return runs.compared_with(step);
  StepRange steps = period_of(scenario);
  steps.restores_residuals = true;
  ExecutedStep restored(scenario, scenario.name, step.choice(), steps);
  restored.execute(progress, "executing the step with its residuals");
  return runs.compared_with(restored);
}

/// Whether the step rounds as the recipe says. GPUs round to e4m3 where tensors have one scale, gradients, too: such steps are
/// held against numbers that are not rounded.
bool rounds_alike(const ExecutedStep& step, const Scenario& scenario) {
  return step.choice().rounds && (step.choice().backend == host_backend || !scenario.scales_whole_tensors());
}

double largest_of_gradients(const StepDifference& difference) {
  double largest = 0;
  for (const TensorDifference& tensor : difference.tensors) largest = std::max(largest, tensor.gradient);
  return largest;
}

}  // namespace

StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario, Progress* progress) {
  return compare_restored(UnshardedRuns(scenario, rounds_alike(step, scenario), progress), step, scenario, progress);
}

StepDifference compare_as_applied(const ExecutedStep& step, const Scenario& scenario) {
  return UnshardedRuns(scenario, rounds_alike(step, scenario), nullptr).compared_with(step);
}

std::vector<std::string> causes_of_other_rounding(const Scenario& scenario) {
  std::vector<std::string> causes;
  if (!scenario.training.casts()) return causes;
  const ParallelismSpec& p = scenario.parallelism;
  if (p.tp > 1) causes.push_back(scenarios::named(Axis::tp, p.tp) + " cuts weights and activations");
  if (p.cp > 1) causes.push_back(scenarios::named(Axis::cp, p.cp) + " cuts sequences");
  if (scenario.model.moe.experts > 0 && p.ep > 1)
    causes.push_back(scenarios::named(Axis::ep, p.ep) + " gives experts the rows of several micro-batches at once");
  if (scenario.model.moe.experts > 0 && p.etp > 1) causes.push_back(scenarios::named("etp", p.etp) + " cuts experts");
  if (scenario.training.local_steps())
    causes.emplace_back("later steps have weights whose gradients were summed in another order");
  return causes;
}

bool VerificationTolerance::allows(const StepDifference& difference) const {
  return difference.loss <= rest && std::ranges::all_of(difference.tensors, [this](const TensorDifference& tensor) {
           return tensor.gradient <= gradients && tensor.weight <= rest;
         });
}

VerificationTolerance verification_tolerance(DType precision) {
  constexpr double roundings = 32, of_bf16 = 0x1p-8, of_fp16 = 0x1p-11;
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

namespace {

std::vector<std::string> causes_where_executed(const ExecutedStep& step, const Scenario& scenario) {
  if (!rounds_alike(step, scenario)) return {};
  std::vector<std::string> causes = causes_of_other_rounding(scenario);
  if (step.choice().backend == cuda_backend && scenario.training.casts())
    causes.emplace_back("GPUs compute in bf16 what is rounded then");
  return causes;
}

/// Of GPUs that round as a host, what is compared is not rounded to fp8 or fp4.
DType precision_of(const ExecutedStep& step, const Scenario& scenario) {
  if (step.choice().backend == host_backend) return DType::f32;
  return scenario.training.casts() && rounds_alike(step, scenario) ? DType::bf16 : step.precision();
}

}  // namespace

Verification verify(const ExecutedStep& step, const Scenario& scenario, Progress* progress) {
  const UnshardedRuns runs(scenario, rounds_alike(step, scenario), progress);
  Verification verification{.tolerance = verification_tolerance(precision_of(step, scenario)),
                            .difference = compare_restored(runs, step, scenario, progress)};
  if (std::vector<std::string> causes = causes_where_executed(step, scenario); !causes.empty()) {
    verification.other_rounding = {.difference = verification.difference.largest(), .causes = std::move(causes)};
    ExecutionChoice unrounded = step.choice();
    unrounded.rounds = false;
    ExecutedStep flow(scenario, scenario.name, unrounded);
    flow.execute(progress, "executing the step without rounding");
    verification.difference = compare_with_unsharded(flow, scenario, progress);
  }
  if (scenario.training.compressor.keeps_residuals())
    verification.compression_error = largest_of_gradients(runs.compared_with(step));
  return verification;
}

}  // namespace tandem::studies
