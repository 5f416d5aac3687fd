#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "runtime/base/units.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Whether a pass is through the model's first chunk (the embedding), its last (the loss), or one between.
enum class ChunkPlace : std::uint8_t {
  first,
  middle,
  last
};
inline constexpr std::size_t chunk_places = 3;

/// How long a pass of one micro-batch through a chunk takes at least, cut at each layer's last kernel:
///
///   begin   to the end of the last kernel of the first layer that the pass comes to: from the end of what the rank computed
///           before, or from the arrival of the pass's input, which some kernels of the layer (recomputed ones) need not wait for
///   next    from there to the end of the last kernel of the layer after it
///   end     from the end of the last layer to the send, or where the pass ends the model to its last kernel
///
/// Every number is the longest path between two kernels of a DAG that the real lowering made, with the idle time of each
/// collective and kernel. As a rank's kernels run one after the other, the parts of a pass and the passes of a rank add up.
struct PassTimes {
  struct Begin {
    Seconds from_stream = 0, from_input = 0;
  };
  std::array<Begin, chunk_places> begin{};
  std::array<Seconds, chunk_places> end{};
  Seconds next = 0;
  /// Kernels alone, of a layer and of what is no layer: what a pass takes of its rank whatever runs beside it.
  Seconds layer_kernels = 0;
  std::array<Seconds, chunk_places> other_kernels{};
};

/// What layers of one kind cost a rank, and the model's ends beside such layers. Lower bounds, all of them.
struct PassCost {
  PassTimes forward, backward;
  Seconds weight_kernels = 0;  ///< of a layer, where the schedule splits the backward; else they are in `backward`

  Bytes kept_by_layer = 0;                        ///< of a micro-batch, from its forward to its backward
  std::array<Bytes, chunk_places> kept_beside{};  ///< of the chunk, beside its layers
  /// What more is there at the fullest moment of a backward, of a micro-batch that has just gone forward.
  std::array<Bytes, chunk_places> passing{};

  // Parameters of a rank, in elements.
  std::int64_t layer_parameters = 0;  ///< without the experts'
  std::int64_t layer_expert_parameters = 0;
  std::array<std::int64_t, chunk_places> other_parameters{};  ///< of the embedding, of the head
  Seconds optimizer_per_parameter = 0;                        ///< of those that a rank owns
};

/// A kind of layer.
struct LayerKind {
  bool experts = false;     ///< a mixture of experts
  bool recomputed = false;  ///< in whole
  bool mlp_recomputed = false;
  auto operator<=>(const LayerKind&) const = default;
};
LayerKind kind_of(const Scenario& scenario, std::int64_t layer);

/// Costs of layers by what they depend on (`Key`), each found once. Finding one lowers three stages of two such layers on a
/// cluster that just holds them, without data parallelism. All scenarios have the same model, kind of cluster and framework, as
/// the plans of one search do: the key says nothing of these.
class PassCosts {
 public:
  const PassCost& of(const Scenario& scenario, const LayerKind& kind);
  std::size_t found() const { return known_.size(); }

  /// `of` will need the costs of the scenario's layers.
  void ask_for(const Scenario& scenario);
  /// Finds all that was asked for, in `jobs` processes at once. `progress` is told now and then how many are found.
  void find(std::size_t jobs, const std::function<void(std::size_t done, std::size_t of)>& progress);

 private:
  struct Key {
    LayerKind layer;
    // parallelism; the order and place of ranks do not matter, as the cluster that layers are lowered on packs them best
    std::int64_t tp, cp, ep, etp;
    std::int64_t world_size;  ///< among so many GPUs is the slowest
    bool sp, own_expert_axis, scatter_gather;
    CpMethod cp_method;
    CpLayout cp_layout;
    Dispatcher dispatcher;
    // training
    std::int64_t sequence, micro_batch;
    DType precision, grad_dtype;
    std::optional<AttentionKernel> attention;
    std::int64_t grad_compression;
    bool overlaps_dp, overlaps_tp;
    bool recomputes_norm, recomputes_activation, recomputes_attention, recomputes_mla_up;
    bool splits_backward;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, PassCost> known_;
  std::map<Key, Scenario> asked_for_;

  static Key key_of(const Scenario& scenario, const LayerKind& kind);
};

}  // namespace tandem::studies
