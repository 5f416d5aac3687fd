#include "scenarios/lowering/lower.h"

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/stage_program.h"

namespace tandem {

double model_flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  const auto h = static_cast<double>(model.hidden);
  const auto heads_width = static_cast<double>(model.heads * model.head_dim);
  const auto qkv_width = static_cast<double>((model.heads + 2 * model.kv_heads) * model.head_dim);
  const double mlp_matrices = model.gated ? 3 : 2;
  const double layer = 2 * h * qkv_width + 2 * heads_width * h + 2 * h * static_cast<double>(model.ffn) * mlp_matrices +
                       2 * static_cast<double>(sequence) * heads_width;
  return 3 * (static_cast<double>(model.layers) * layer + 2 * h * static_cast<double>(model.vocab));
}

Dag lower(const Scenario& scenario, const World& world) {
  DagBuilder builder;
  Dag& dag = builder.dag();
  dag.info = {.scenario = scenario.name,
              .gpus = scenario.parallelism.world(),
              .tokens = scenario.training.global_batch * scenario.training.sequence,
              .model_flops_per_token = model_flops_per_token(scenario.model, scenario.training.sequence),
              .micro_batches = static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism)),
              .stages = static_cast<std::int32_t>(scenario.parallelism.pp)};
  dag.devices = world.devices;
  dag.links = world.links;
  for (const Rank& rank : world.ranks) builder.add_rank(rank);
  for (const Communicator& communicator : world.communicators) builder.add_communicator(communicator);
  for (RankIndex rank = 0; rank < world.ranks.size(); ++rank) {
    Context context(builder, scenario, world, rank);
    StageProgram(context).lower();
  }
  return builder.finish();
}

}  // namespace tandem
