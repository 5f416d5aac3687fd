#include "scenarios/lowering/lower_rank.h"

#include <algorithm>
#include <exception>
#include <map>

#include "runtime/base/freed_memory.h"
#include "runtime/base/parallel.h"
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

}  // namespace

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

void add_ranks_and_communicators(const World& world, DagBuilder& builder) {
  for (const Rank& rank : world.ranks) builder.add_rank(rank);
  for (const Communicator& communicator : world.communicators) builder.add_communicator(communicator);
}

void lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                const std::function<void(StageProgram&)>& program, const MatrixBlocks& of_sharded) {
  Context context(builder, scenario, world, rank);
  context.muon_blocks = of_sharded;
  if (scenario.training.offload.activations > 0) context.offload.follow(offloaded_activations(scenario, world, rank, program));
  StageProgram lowered(context);
  program(lowered);
}

namespace {

void lower_in_parts(DagBuilder& builder, const std::vector<RankIndex>& ranks, std::size_t at_once,
                    const std::function<void(DagBuilder& builder, RankIndex rank)>& lower) {
  // One more than there are threads, so that none waits where a part comes a little later than the next.
  std::vector<DagBuilder> parts(at_once + 1, DagBuilder::part_of(builder));
  std::vector<std::exception_ptr> errors(parts.size());
  const auto make = [&](std::size_t number, std::size_t place) {
    try {
      lower(parts[place], ranks[number]);
    } catch (...) {
      errors[place] = std::current_exception();
    }
    parts[place].end_rank();
  };
  const auto join = [&](std::size_t number, std::size_t place) {
    // Where both throw, what came before the error was lowered before it.
    builder.reserve_for(ranks.size() - number, parts[place]);
    builder.append(parts[place]);
    if (errors[place]) std::rethrow_exception(errors[place]);
  };
  make_and_join(ranks.size(), parts.size(), make, join);
}

}  // namespace

void lower_each(DagBuilder& builder, const std::vector<RankIndex>& ranks,
                const std::function<void(DagBuilder& builder, RankIndex rank)>& lower) {
  const std::size_t at_once = std::min(most_threads(), ranks.size());
  if (at_once > 1) {
    lower_in_parts(builder, ranks, at_once, lower);
    constexpr std::size_t many_tasks = 100'000;
    if (builder.dag().tasks.size() >= many_tasks) give_back_freed_memory();  // a fifth of the peak, by then
    return;
  }
  for (std::size_t number = 0; number < ranks.size(); ++number) {
    lower(builder, ranks[number]);
    builder.end_rank();
    if (number == 0) builder.reserve_for(ranks.size() - 1, builder);
  }
}

}  // namespace tandem::scenarios
