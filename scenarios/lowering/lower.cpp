#include "scenarios/lowering/lower.h"

#include <spdlog/spdlog.h>

#include <numeric>
#include <stdexcept>

#include "scenarios/lowering/lower_rank.h"
#include "scenarios/lowering/repeated_passes.h"
#include "scenarios/spec/model_flops.h"
#include "scenarios/spec/parameter_count.h"

namespace tandem::scenarios {
namespace {

StepDocuments documents_of(const Scenario& scenario, const DocumentTotals& packed) {
  if (!scenario.training.documents.any()) return {};
  return {.count = packed.documents(),
          .padding = packed.padding,
          .longest = packed.longest(),
          .attention_share = packed.attention_share(scenario.training.sequence),
          .heaviest_micro_batch = packed.heaviest_micro_batch,
          .heaviest_replica = packed.heaviest_replica,
          .padding_flops_share = padding_flops_share(scenario.model, packed),
          .heaviest_rank = packed.heaviest_rank,
          .mean_ranks = packed.mean_ranks};
}

Dag lower_as_said(const Scenario& scenario, const World& world, const StepRange& steps, const std::vector<RankIndex>& ranks) {
  if (steps.count > 1 && scenario.parallelism.zero > 0) throw std::logic_error("several steps are lowered without ZeRO alone");
  if (steps.count > 1 && scenario.training.compressor.keeps_residuals())
    throw std::logic_error("residuals are those before a single step");
  const DocumentTotals packed = document_totals(scenario);
  DagBuilder builder;
  Dag& dag = builder.dag();
  dag.info = {.scenario = scenario.name,
              .gpus = scenario.parallelism.world_size(),
              .tokens = scenario.training.global_batch * scenario.training.sequence,
              .model_flops_per_token = model_flops_per_token(scenario.model, packed) +
                                       encoder_flops_per_token(scenario.model, scenario.training.sequence),
              .parameters = parameter_count(scenario.model),
              .active_parameters = active_parameter_count(scenario.model),
              .steps = steps.count,
              .micro_batches = static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism)),
              .stages = static_cast<std::int32_t>(scenario.parallelism.pp),
              .causal = scenario.model.causal,
              .documents = documents_of(scenario, packed)};
  dag.software = scenario.software;
  dag.devices = world.devices;
  dag.links = world.links;
  add_ranks_and_communicators(world, builder);
  const MatrixBlocks of_sharded = blocks_of_sharded(scenario);
  const auto lower_one = [&](DagBuilder& of_rank, RankIndex rank, bool declares_only) {
    const auto follow = [&](StageProgram& program) {
      if (!declares_only) program.lower(steps);
    };
    return lower_rank(of_rank, scenario, world, rank, follow, of_sharded);
  };
  lower_each(builder, ranks, lower_one,
             steps.copies_ranks ? copied_ranks(scenario, world, ranks) : std::vector<std::optional<CopiedRank>>{});
  return builder.finish();
}

Dag lower_ranks(const Scenario& scenario, const World& world, StepRange steps, const std::vector<RankIndex>& ranks) {
  const auto lower_all_passes = [&](const std::logic_error& why) {
    spdlog::debug("{}: all are lowered", why.what());
    steps.copies_passes = false;
    return lower_as_said(scenario, world, steps, ranks);
  };
  try {
    return lower_as_said(scenario, world, steps, ranks);
  } catch (const PassesDiffer& difference) {
    return lower_all_passes(difference);
  } catch (const UntrackedBuffer& named) {
    return lower_all_passes(named);
  }
}

}  // namespace

StepRange period_of(const Scenario& scenario) { return {.count = static_cast<std::int32_t>(scenario.training.sync_every)}; }

Dag lower(const Scenario& scenario, const World& world, const StepRange& steps) {
  std::vector<RankIndex> all(world.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  return lower_ranks(scenario, world, steps, all);
}

Dag lower_alone(const Scenario& scenario, const World& world, const std::vector<RankIndex>& ranks) {
  return lower_ranks(scenario, world, {}, ranks);
}

}  // namespace tandem::scenarios
