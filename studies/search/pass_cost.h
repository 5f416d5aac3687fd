#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "runtime/base/units.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Whether a pass is through the model's first chunk (the embedding), its last (the loss), or one between.
enum class ChunkPlace : std::uint8_t {
  first,
  middle,
  last
};
inline constexpr std::size_t chunk_places = 3;

/// Lower bounds of the time that one micro-batch takes through a chunk, cut at each layer's last kernel that is no weight
/// gradient's:
///
///   begin   to that kernel of the first layer that the pass comes to: from the end of what the rank computed before, or from the
///           arrival of the pass's input, which some kernels of the layer (recomputed ones) need not wait for
///   next    from there to that kernel of the layer after it
///   end     from that kernel of the last layer to the send, and to the pass's last kernel
///
/// Weight gradients that are put off until an exchange hides them (`training.overlap.ep`) come after the cut: beside the kernels
/// of the next layer, or after the send where none is left.
///
/// Every number is the longest path between two kernels of a DAG that the real lowering made, with the idle time of each
/// collective and kernel. As a rank's kernels run one after the other, the parts of a pass and the passes of a rank add up.
struct PassTimes {
  struct Begin {
    Seconds from_stream = 0, from_input = 0;
    bool operator==(const Begin&) const = default;
  };
  struct End {
    Seconds to_send = 0;  ///< 0 where the pass ends the model
    Seconds to_last = 0;
    bool operator==(const End&) const = default;
  };
  std::array<Begin, chunk_places> begin{};
  std::array<End, chunk_places> end{};
  Seconds next = 0;
  /// From the begin of a layer's first kernel to its cut: how long it occupies its rank if no other pass's kernels go between its
  /// own. No more than `next`.
  Seconds layer_alone = 0;
  /// Times of the kernels alone, of a layer and of what is no layer: how long a pass occupies its rank whatever runs beside it;
  /// and of those that come after the cut.
  Seconds layer_kernels = 0, layer_put_off = 0;
  std::array<Seconds, chunk_places> other_kernels{}, other_put_off{};
  bool operator==(const PassTimes&) const = default;
};

/// Lower bounds of what layers of one kind, and the model's ends beside such layers, cost a rank.
struct PassCost {
  PassTimes forward, backward;
  Seconds weight_kernels = 0;  ///< of a layer's weight gradients, where the schedule splits the backward; else in `backward`

  Bytes kept_by_layer = 0;                        ///< for a micro-batch, from its forward to its backward
  std::array<Bytes, chunk_places> kept_beside{};  ///< the same for the rest of the chunk
  /// Where the schedule splits the backward: for a micro-batch, from the end of its first half to its second, which needs what
  /// weights' gradients are made of: the inputs of linear layers, recomputed or kept, and the gradients of what they gave.
  Bytes kept_for_weights_by_layer = 0;
  std::array<Bytes, chunk_places> kept_for_weights_beside{};
  /// Bytes beyond those kept, at the fullest moment of the backward of a micro-batch that has just gone forward.
  std::array<Bytes, chunk_places> passing{};
  /// Casts of a layer's weights, which are made once in a step: those that forwards read last, and those that backwards do.
  Bytes casts_for_forward = 0, casts_for_backward = 0;

  // Parameters of a rank, in elements.
  std::int64_t layer_parameters = 0;  ///< without the experts'
  std::int64_t layer_expert_parameters = 0;
  std::array<std::int64_t, chunk_places> other_parameters{};  ///< of the embedding; of the head and what predicts further tokens
  std::int64_t last_expert_parameters = 0;                    ///< of the experts of what predicts further tokens
  Seconds optimizer_per_parameter = 0;                        ///< for each parameter that the rank owns

  bool has_all_ranks = true;  ///< nothing was left out, see PassRanks

  bool operator==(const PassCost&) const = default;
};

/// Whose tasks the times of passes are found among. Bytes and parameters are the same either way.
enum class PassRanks : std::uint8_t {
  of_stages,  ///< of one rank of each stage, which never waits for others of its ring of context parallelism: no more than with
              ///< all, at a fraction of the work
  all
};

/// Which backwards costs are of, where a schedule splits them but for some.
enum class Backwards : std::uint8_t {
  of_schedule,
  whole
};
/// Whether a schedule has whole backwards besides those that it splits.
bool has_whole_backwards(const Scenario& scenario);

/// What distinguishes layers by cost.
struct LayerClass {
  LayerKind kind;
  bool recomputed = false;  ///< the whole layer is
  bool mlp_recomputed = false;
  bool cast = false;  ///< its linear layers multiply in fp8 or fp4
  auto operator<=>(const LayerClass&) const = default;
};
LayerClass layer_class(const Scenario& scenario, std::int64_t layer);

/// Costs of layers by what they depend on (`Key`), each found once. Finding one lowers three stages of two such layers on a
/// cluster that just holds them, without data parallelism; what lays out the same ranks is laid out once. All scenarios have the
/// same model, kind of cluster and framework, as the plans of one search do: the key says nothing of these.
class PassCosts {
 public:
  struct Key {
    LayerClass layer;
    PassRanks ranks;
    // parallelism; of the order and place of ranks it only matters whether they are packed as on the cluster that layers are
    // lowered on
    std::int64_t tp, cp, ep, etp;
    std::int64_t world_size;  ///< the slowest of so many GPUs sets the pace
    bool packed_alike;
    bool sp, own_expert_axis, scatter_gather;
    CpMethod cp_method;
    CpLayout cp_layout;
    std::int64_t cp_ulysses;
    Dispatcher dispatcher;
    // training
    std::int64_t sequence, micro_batch;
    OptimizerKind optimizer;
    DType precision, grad_dtype, moment_dtype, second_moment_dtype, master_dtype;
    Recipe recipe;
    bool param_gather, fp8_attention, fp8_output_proj, fp8_activation_input;
    std::optional<AttentionKernel> attention;
    std::int64_t grad_compression, recompute_segment;
    bool overlaps_dp, overlaps_tp, overlaps_ep, gates_at_experts;
    bool recomputes_norm, recomputes_activation, recomputes_attention, recomputes_mla_up;
    bool splits_backward;
    bool mtp_apart;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Scenario& scenario, const LayerClass& kind, PassRanks ranks, Backwards backwards);
  /// Returns what the ranks of such a step and their communicators depend on.
  static Key mesh_of(const Key& key, const Scenario& scenario);

  const PassCost& of(const Scenario& scenario, const LayerClass& kind, PassRanks ranks = PassRanks::all,
                     Backwards backwards = Backwards::of_schedule);
  std::size_t found() const { return known_.size(); }

  /// Notes that `of` will be asked for the costs of the scenario's layers, with all backwards that its schedule has.
  void ask_for(const Scenario& scenario, PassRanks ranks = PassRanks::all);
  /// Finds all costs that were asked for, in `jobs` processes at once. Tells `progress` now and then how many are found.
  void find(std::size_t jobs, const std::function<void(std::size_t done, std::size_t of)>& progress);

 private:
  std::map<Key, PassCost> known_;
  std::map<Key, Scenario> asked_for_;
  std::map<Key, World> worlds_;  ///< of the steps that are lowered, by `mesh_of`

  const PassCost* known(Key key) const;
  PassCost measured(const Key& key, const Scenario& scenario);
};

}  // namespace tandem::studies
