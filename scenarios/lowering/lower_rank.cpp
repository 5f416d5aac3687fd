#include "scenarios/lowering/lower_rank.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

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

std::size_t lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                       const std::function<void(StageProgram&)>& program, const MatrixBlocks& of_sharded) {
  Context context(builder, scenario, world, rank);
  context.muon_blocks = of_sharded;
  if (scenario.training.offload.activations > 0) context.offload.follow(offloaded_activations(scenario, world, rank, program));
  StageProgram lowered(context);
  const std::size_t declared = builder.dag().buffers.size();
  program(lowered);
  return declared;
}

namespace {

/// Parts that others are copied from, by place, until the last of these is.
class KeptParts {
 public:
  explicit KeptParts(const std::vector<std::optional<CopiedRank>>& copied) {
    for (const std::optional<CopiedRank>& copy : copied)
      if (copy) ++copies_[copy->from];
  }

  bool keeps(std::size_t place) const { return copies_.contains(place); }
  void keep(std::size_t place, DagBuilder part) { parts_.emplace(place, std::move(part)); }
  DagBuilder& at(std::size_t place) { return parts_.at(place); }
  void is_done(std::size_t place) {
    if (--copies_.at(place) == 0) parts_.erase(place);
  }

 private:
  std::map<std::size_t, std::size_t> copies_;  ///< of each, that are to come
  std::map<std::size_t, DagBuilder> parts_;
};

/// Whether a rank declares, in `own`, what the one of `part` declared as its first buffers: slices may lie elsewhere.
bool declare_alike(const Dag& own, const Dag& part, std::size_t declared) {
  if (own.buffers.size() != declared) return false;
  for (BufferId id = 0; id < declared; ++id) {
    Buffer mine = own.buffers[id];
    const Buffer its = part.buffers[id];
    mine.rank = its.rank;
    mine.offset = its.offset;
    if (mine != its) return false;
  }
  return true;
}

void lower_in_parts(DagBuilder& builder, const std::vector<RankIndex>& ranks, std::size_t at_once, const LowerRank& lower,
                    const std::vector<std::optional<CopiedRank>>& copied) {
  // One more than there are threads, so that none waits where a part comes a little later than the next.
  std::vector<DagBuilder> parts(at_once + 1, DagBuilder::part_of(builder));
  std::vector<std::exception_ptr> errors(parts.size());
  std::vector<std::size_t> declared(ranks.size());  // buffers
  KeptParts kept(copied);
  const auto copy_of = [&](std::size_t number) { return number < copied.size() && copied[number] ? &*copied[number] : nullptr; };
  const auto make = [&](std::size_t number, std::size_t place) {
    try {
      declared[number] = lower(parts[place], ranks[number], copy_of(number) != nullptr);
    } catch (...) {
      errors[place] = std::current_exception();
    }
    parts[place].end_rank();
  };
  const auto join = [&](std::size_t number, std::size_t place) {
    // Where both throw, what came before the error was lowered before it.
    if (const CopiedRank* copy = copy_of(number); copy != nullptr && !errors[place]) {
      DagBuilder& from = kept.at(copy->from);
      DagBuilder own = std::exchange(parts[place], DagBuilder::part_of(builder));
      if (declare_alike(own.dag(), from.dag(), declared[copy->from])) {
        builder.append_as(from, {ranks[number], copy->communicator, &own});
      } else {
        lower(parts[place], ranks[number], false);
        parts[place].end_rank();
        builder.append(parts[place]);
      }
      kept.is_done(copy->from);
    } else if (builder.reserve_for(ranks.size() - number, parts[place]); kept.keeps(number)) {
      builder.append_and_keep(parts[place]);
      kept.keep(number, std::exchange(parts[place], DagBuilder::part_of(builder)));
    } else {
      builder.append(parts[place]);
    }
    if (errors[place]) std::rethrow_exception(errors[place]);
  };
  make_and_join(ranks.size(), parts.size(), make, join);
}

}  // namespace

void lower_each(DagBuilder& builder, const std::vector<RankIndex>& ranks, const LowerRank& lower,
                const std::vector<std::optional<CopiedRank>>& copied) {
  const std::size_t at_once = std::min(most_threads(), ranks.size());
  if (at_once > 1 || !copied.empty()) {
    lower_in_parts(builder, ranks, at_once, lower, copied);
    // Of a smaller step, the simulation has again what is free.
    constexpr std::size_t many_tasks = 4'000'000;
    if (builder.dag().tasks.size() >= many_tasks) give_back_freed_memory();  // a fifth of the peak, by then
    return;
  }
  for (std::size_t number = 0; number < ranks.size(); ++number) {
    lower(builder, ranks[number], false);
    builder.end_rank();
    if (number == 0) builder.reserve_for(ranks.size() - 1, builder);
  }
}

}  // namespace tandem::scenarios
