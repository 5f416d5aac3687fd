#include "scenarios/lowering/lower_rank.h"

#include <algorithm>
#include <map>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {
namespace {

/// Lowers the rank once to see what its backwards read. Returns that of the first layers of each chunk.
ActivationReaders offloaded_activations(const Scenario& scenario, const World& world, RankIndex rank,
                                        const std::function<void(StageProgram&)>& program) {
  DagBuilder builder;
  add_ranks_and_communicators(world, builder);
  Context context(builder, scenario, world, rank);
  context.offload.watch();
  StageProgram watched(context);
  program(watched);
  ActivationReaders readers = context.offload.readers();
  std::map<std::int16_t, std::int64_t> first;  // by chunk: its first layer
  for (const auto& [pass, activations] : readers) first.try_emplace(pass.chunk, pass.layer);
  for (const auto& [pass, activations] : readers) first[pass.chunk] = std::min<std::int64_t>(first[pass.chunk], pass.layer);
  std::erase_if(readers, [&](const auto& reader) {
    return reader.first.layer >= first[reader.first.chunk] + scenario.training.offload.activations;
  });
  return readers;
}

/// The blocks of matrices that the ranks of the sharded step take for matrices of their own, where this is its unsharded
/// reference: those that a rank of such a mesh declares.
MatrixBlocks blocks_of_sharded(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.reference_tp == 1 && p.reference_etp == 1) return {};
  Scenario sharded = scenario;
  sharded.parallelism.tp = p.reference_tp;
  sharded.parallelism.etp = p.reference_etp;
  sharded.parallelism.dp = p.reference_etp;
  sharded.parallelism.reference_tp = sharded.parallelism.reference_etp = 1;
  sharded.training.global_batch *= sharded.parallelism.dp;
  sharded.cluster.gpus = sharded.parallelism.world_size();
  const World world = make_world(sharded, true);
  DagBuilder builder;
  add_ranks_and_communicators(world, builder);
  Context context(builder, sharded, world, 0);
  StageProgram program(context);
  MatrixBlocks blocks;
  for (const ChunkParameters& chunk : context.chunks)
    for (const Bucket& bucket : chunk.buckets())
      for (const MuonMatrix& matrix : bucket.matrices) blocks[matrix.piece.tensor] = {matrix.piece.rows, matrix.piece.columns};
  return blocks;
}

}  // namespace

void add_ranks_and_communicators(const World& world, DagBuilder& builder) {
  for (const Rank& rank : world.ranks) builder.add_rank(rank);
  for (const Communicator& communicator : world.communicators) builder.add_communicator(communicator);
}

void lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                const std::function<void(StageProgram&)>& program) {
  Context context(builder, scenario, world, rank);
  context.muon_blocks = blocks_of_sharded(scenario);
  if (scenario.training.offload.activations > 0) context.offload.follow(offloaded_activations(scenario, world, rank, program));
  StageProgram lowered(context);
  program(lowered);
}

}  // namespace tandem::scenarios
