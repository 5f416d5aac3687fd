#include "studies/step/executed_step.h"

#include "runtime/backend_names.h"
#include "runtime/base/input_error.h"
#include "runtime/base/peak_rss.h"
#include "runtime/base/stopwatch.h"
#include "studies/step/simulated_step.h"
#include "studies/step/simulation_limits.h"

namespace tandem::studies {

namespace {

void refuse_on_gpus(const Scenario& scenario, const std::string& file) {
  const TrainingSpec& training = scenario.training;
  if (training.offload.any())
    throw InputError({file, 0, 0}, "training.offload is not executed on GPUs yet; expected --backend host");
  const bool moments = training.moment_dtype == training.second_moment_dtype &&
                       (training.moment_dtype == DType::f32 || training.moment_dtype == DType::bf16);
  if (training.optimizer == OptimizerKind::muon && training.moment_dtype != DType::f32)
    throw InputError({file, 0, 0},
                     "GPUs execute Muon with its momentum in fp32; expected training.moment_dtype fp32, or --backend host");
  if (training.optimizer == OptimizerKind::adafactor && training.second_moment_dtype != DType::f32)
    throw InputError({file, 0, 0},
                     "GPUs execute Adafactor with its mean squares in fp32; expected training.second_moment_dtype fp32, or "
                     "--backend host");
  if (!moments || training.master_dtype != DType::f32) {
    throw InputError(
        {file, 0, 0},
        "GPUs execute Adam with both moments in fp32 or both in bf16, and weights in fp32; expected training.moment_dtype, "
        "second_moment_dtype and master_dtype like that, or --backend host");
  }
}

}  // namespace

Dag lower_all_ranks(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, const StepRange& steps,
                    bool hops) {
  constexpr std::int32_t most_steps = 64;
  refuse_graphs_on_host(backend);
  refuse_too_many_ranks(scenario.parallelism.world_size(), file, backend);
  if (backend.backend == cuda_backend) refuse_on_gpus(scenario, file);
  if (steps.count > most_steps) {
    throw InputError({file, 0, 0}, "sync_every " + std::to_string(steps.count) +
                                       " makes too many steps to execute, which takes a whole period; expected at most " +
                                       std::to_string(most_steps));
  }
  Scenario executed = scenario;
  executed.training.casts_both_ways = backend.backend == cuda_backend;
  Dag dag = lower_within_limits(executed, make_world(executed, false, {.detail = hops ? Detail::hops : Detail::sums}), steps);
  if (!backend.rounds)
    for (OpAttributes& attributes : dag.attributes)
      if (auto* cast = std::get_if<CastAttributes>(&attributes)) cast->to = NarrowType::none;
  return dag;
}

Dag lower_to_carry(const Scenario& scenario, const std::string& file, bool hops) {
  const std::int64_t ranks = scenario.parallelism.world_size();
  if (ranks > most_lowered_ranks) {
    throw InputError({file, 0, 0}, std::to_string(ranks) + " ranks are too many to lower; expected at most " +
                                       std::to_string(most_lowered_ranks) + ", or `tandem lower --folded` to look at");
  }
  Scenario executed = scenario;
  executed.training.casts_both_ways = true;
  return lower_within_limits(executed, make_world(executed, false, {.detail = hops ? Detail::hops : Detail::sums}),
                             period_of(scenario));
}

ExecutedStep::ExecutedStep(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend,
                           const StepRange& steps, bool hops)
    : precision_(scenario.training.precision),
      backend_(backend),
      dag_(lower_all_ranks(scenario, file, backend, steps, hops)),
      site_(make_site(backend, dag_, file)) {}

void ExecutedStep::execute(Progress* progress, const std::string& what) {
  const Stopwatch stopwatch;
  EndedTasks ended = 0;
  const auto share = [&] { return static_cast<double>(ended) / static_cast<double>(dag_.tasks.size()); };
  const auto watch = watched(progress, what, share);
  timeline_ = site_->execute(ended);
  wall_ = stopwatch.elapsed();
}

StepResult ExecutedStep::result() const {
  return summarize(dag_, timeline_, precision_,
                   {.backend = backend_.backend,
                    .folded = false,
                    .wall = wall_,
                    .peak_rss = peak_rss(),
                    .undated_step = site_->undated_step()});
}

}  // namespace tandem::studies
