#include <spdlog/fmt/fmt.h>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"
#include "studies/lint/rendezvous.h"
#include "studies/lint/rules.h"

namespace tandem::studies {

/// With fewer micro-batches than stages some stages never work at the same time: the bubble is at least (pp - 1) / m of the work
/// (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1).
void few_micro_batches(LintContext& context) {
  const ParallelismSpec& p = context.scenario.parallelism;
  const TrainingSpec& t = context.scenario.training;
  const std::int64_t micro_batches = t.micro_batches(p);
  if (p.pp == 1 || micro_batches >= p.pp) return;
  Finding& found = context.find(
      Severity::warning, "few-micro-batches",
      {"training.global_batch", "training.micro_batch", "parallelism.pp", "parallelism.dp"},
      fmt::format(
          "{} micro-batches for {} pipeline stages: at least {:.0f} % of the time stages wait for the first and the last of them",
          micro_batches, p.pp, 100.0 * static_cast<double>(p.pp - 1) / static_cast<double>(p.pp - 1 + micro_batches)));
  if (t.micro_batch > 1 && t.micro_batch % 2 == 0)
    found.fix = {fmt::format("training.micro_batch={}", t.micro_batch / 2)};
  else if (t.global_batch % (p.data_replicas() * 2) == 0 && p.pp % 2 == 0 && p.vpp == 1 && p.pipeline_layout.empty() &&
           traits_of(t.schedule).admits_stages(p.pp / 2))
    found.fix = {fmt::format("parallelism.pp={}", p.pp / 2), "parallelism.dp="};
}

/// Each stage gathers its weights for the micro-batches of every round, or keeps them, and then nothing is saved but memory of
/// the optimizer, which ZeRO-1 saves, too (Rajbhandari et al. 2020, arXiv 1910.02054, section 10.2).
void sharded_weights_in_pipeline(LintContext& context) {
  const ParallelismSpec& p = context.scenario.parallelism;
  if (p.zero != 3 || p.pp == 1) return;
  Finding& found =
      context.find(Severity::warning, "sharded-weights-in-pipeline", {"parallelism.zero", "parallelism.pp"},
                   fmt::format("zero 3 with {}: {}; zero 1 shards the optimizer's states as well", named(Axis::pp, p.pp),
                               p.gather_per_micro_batch
                                   ? "every micro-batch gathers a stage's weights anew"
                                   : "weights are gathered once and kept for the step, so that their memory is not saved"));
  found.fix = {"parallelism.zero=1"};
  for (const char* field : {"reshard_after_forward", "gather_per_micro_batch", "prefetch"})
    found.fix.push_back(fmt::format("parallelism.{}=", field));
}

void circular_transfers(LintContext& context) {
  const Scenario& scenario = context.scenario;
  if (scenario.parallelism.pp == 1) return;
  const Scenario small = pipeline_in_small(scenario);
  const Dag dag = lower(small, make_world(small, false));
  const std::vector<std::string> circle = circle_of(pipeline_transfers(dag, true));
  if (circle.empty()) return;
  std::string way;
  for (const std::string& sentence : circle) way += (way.empty() ? "" : ", ") + sentence;
  context.find(
      Severity::advice, "circular-transfers", {"training.schedule", "parallelism.vpp", "parallelism.pp"},
      "posted in the order of this schedule on one NCCL communicator, sends and receives wait for each other: " + way +
          "; receives must be posted ahead, as Megatron-LM does, or each direction have a communicator of its own, as in "
          "tandem execute");
}

}  // namespace tandem::studies
