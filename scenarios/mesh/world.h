#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/scenario.h"
#include "topology/layouts.h"

namespace tandem::scenarios {

/// How many sizes of groups there are under dynamic context parallelism, beside that of all ranks: 2 to 32 of 64.
inline constexpr std::uint8_t context_group_sizes = 5;
static_assert(most_dynamic_ranks == std::int64_t{2} << context_group_sizes);

/// The role that a communicator plays for a rank. A rank takes part in at most one communicator through each slot.
enum class Slot : std::uint8_t {
  tp,           ///< tensor (and sequence) parallel group
  send_tensor,  ///< the pair to the next of it, where shards go round beside the GEMMs (training.overlap.tp)
  receive_tensor,
  kv_replicas,    ///< its ranks with the same key-value head, where several hold one
  data,           ///< ranks that reduce gradients: dp x cp (x ep, where that is an axis of its own); without dp under local SGD
  data_exchange,  ///< the same as `data`, where parts of compressed gradients go from each rank to each
  data_block,     ///< neighbours in `data`, where it works in two levels (see data_blocks.h); `data` is absent then
  data_across,    ///< ranks of equal place in the blocks
  context,        ///< ranks that share sequences, where they exchange among all
  send_context,   ///< the pair to the next of them, where they form a ring
  receive_context,
  context_exchange,  ///< `context` for the heads of layers with a state, which go from each rank to each
  expert,            ///< ranks that share a layer's experts out among them: dispatch and combine
  routing,           ///< the same, where each gathers what all of them chose before they send (HybridEP)
  expert_tensor,     ///< ranks that share every expert's matrices out among them
  expert_data,       ///< the same for those with the same experts
  expert_data_exchange,
  gradient_norm,    ///< every rank that holds a part of the gradient
  embedding,        ///< first and last stage, where both hold the token table
  send_forward,     ///< the pair to the next stage
  receive_forward,  ///< the pair from the previous stage
  send_backward,
  receive_backward,
  // the same for model chunks whose forwards go from higher stages to lower ones (see chunk_placement.h)
  send_forward_descending,
  receive_forward_descending,
  send_backward_descending,
  receive_backward_descending,
  replicas,  ///< ranks of equal place in the data-parallel replicas, where these average weights (local SGD)
  to_host,   ///< one rank, and the memory of its host, where something is offloaded
  from_host,
  mirror,         ///< two stages that hold the same parts of the model (dualpipe)
  amax,           ///< ranks that share delayed scales: of a stage, or with training.tp_only_amax_red those with its sequences
  expert_load,    ///< ranks of a stage, which sum up how many choices each expert had (model.moe.expert_bias)
  context_heads,  ///< neighbours of `context` that deal out heads among them, where the others form a ring
  sequence_load,  ///< ranks that route tokens of the same sequences, where context-parallel ones are among them, which sum up how
                  ///< many choices of each sequence an expert had (model.moe.balance_scope)
  // of 2, 4, .. neighbours of the context-parallel ranks, under dynamic context parallelism; see slot_of_context_group
  context_groups,
  send_context_groups = context_groups + context_group_sizes,
  receive_context_groups = send_context_groups + context_group_sizes,
  context_exchange_groups = receive_context_groups + context_group_sizes,
};
inline constexpr std::size_t slot_count = static_cast<std::size_t>(Slot::context_exchange_groups) + context_group_sizes;

/// The slot of groups of so many ranks, a power of two from 2 on, that stands for one among all context-parallel ranks; of others
/// the same.
Slot slot_of_context_group(Slot slot, std::int64_t ranks);
/// The slot that one of these stands for, and how many ranks its groups have; of others the same, and 0.
std::pair<Slot, std::int64_t> context_group_of(Slot slot);

using SlotSet = std::bitset<slot_count>;

/// Under ECMP nearly every cable of a large fabric carries flows of its own, and an exact fold finds nearly as many classes as
/// there are ranks. Merging them keeps, of all cables that a communicator crosses, only what the worst one leaves to it:
///
///   share = capacity of the cable / how often it is crossed by all flows that could be on it at once
///
/// Max-min fair sharing gives every flow at least that. What goes through the worst cable takes that long, or less if the others
/// are not on it at the same time.
struct CableMerge {
  enum class Among : std::uint8_t {
    same_kind,  ///< communicators of one kind (all data-parallel groups, ...), which run at the same time
    all         ///< everything at once: no flow can do worse
  };
  double tolerance = 0;  ///< communicators whose shares differ by a factor of up to 1 + tolerance are alike; 0: no merging
  Among among = Among::same_kind;
};

struct WorldOptions {
  CableMerge merge = {};         ///< folds what ECMP tells apart by chance; no effect under ideal spreading
  Detail detail = Detail::sums;  ///< with hops the layouts hold every single message, too, which only an unfolded world can
  /// Communicators on whose trees nothing runs (NCCL's tree and NVLS tree), so that their links tell no ranks apart. They stay
  /// among the paths, without links: whoever asks for such a world must see to it that nothing chooses them.
  SlotSet without_trees = {};
  /// Communicators whose trees tell no ranks apart although they run. Every link is crossed by them as often as the fullest of
  /// its class, so that a root is charged what an inner member is. Whoever asks for such a world must see to it that this changes
  /// no time that counts.
  SlotSet even_trees = {};
  /// Links that hold nobody back (see runtime/dag/nonbinding_links.h) tell ranks apart, too. This is for who makes some links
  /// faster afterwards (see sim/speedup.h), so that others may hold flows back.
  bool by_every_link = false;
  /// Stages that mirror each other may be one class (see mirrored_stages.h), of which the ranks of one are lowered.
  bool folds_mirrors = false;
  /// Folds without symmetry of the mesh, rank by rank. The world is the same, and takes longer.
  bool by_every_rank = false;
};

/// The ranks to lower and the communicators between them: all ranks, or with folding one of each class.
struct World {
  std::vector<Device> devices;
  std::vector<Rank> ranks;
  std::vector<Link> links;
  std::vector<Communicator> communicators;
  std::vector<RankIndex> class_of;     ///< by world rank: the lowered rank that stands for it
  std::vector<std::uint32_t> program;  ///< by rank index: where it is the same, so is what is lowered, but for the communicators
  std::vector<std::array<CommunicatorId, slot_count>> communicator_of;  ///< by rank index and slot; `no_id` where there is none

  /// What it was made with; `by_every_link` also where no link was left out of the fold, so that this is the world of every link.
  WorldOptions options = {};

  CommunicatorId communicator(RankIndex rank, Slot slot) const { return communicator_of[rank][static_cast<std::size_t>(slot)]; }
};

/// Lays the mesh and its communicators on the cluster and folds what is alike (see topology/folding.h). Throws
/// InputError where the cluster's links do not lead from one member of a communicator to the next.
World make_world(const Scenario& scenario, bool folded, const WorldOptions& options = {});

/// Returns the communicators that reduce gradients whole (ZeRO-0), for which NCCL chooses between ring and trees by their size.
/// In a tree ranks of different place load their links differently, in a ring all alike.
SlotSet trees_in_question(const Scenario& scenario);

/// Returns those that are on a tree in the slots of the ranks of a DAG that was lowered on this world: `is_on_tree` says so of a
/// task of each collective.
SlotSet slots_of(const World& world, const Dag& dag, const std::function<bool(TaskId)>& is_on_tree);

}  // namespace tandem::scenarios
