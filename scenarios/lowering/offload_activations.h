#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/dag/dag_builder.h"

namespace tandem::scenarios {

class Context;

/// The forward or the backward of one layer for one micro-batch.
struct LayerPass {
  std::int32_t step = 0;
  std::int16_t chunk = -1, layer = -1;
  std::int32_t micro_batch = -1;
  auto operator<=>(const LayerPass&) const = default;
};

/// What the backward of each layer reads of what the forwards made. Activations are numbered in the order in which a rank's
/// lowering makes them, which is the same whether they are offloaded or not.
using ActivationReaders = std::map<LayerPass, std::vector<std::uint32_t>>;

/// Activations in the memory of the host between forward and backward (`cpu_offloading_num_layers` of Megatron-Core, by
/// Transformer Engine's `get_cpu_offload_context`).
///
/// A rank is lowered twice: once to see which activations the backward of each layer reads, and no other, and once with these
/// copied to the host after the layer's forward and back before its backward. Copies run beside what computes. At most two layers
/// are on their way at a time: the forward of a layer waits for what the one before the last left, and what the backward of a
/// layer reads comes back while the backward of the one after it computes. The host's buffers are used again.
class ActivationOffload {
 public:
  /// Looks on, and changes nothing.
  void watch() { watches_ = true; }
  /// Returns what was seen.
  ActivationReaders readers() const;

  /// Copies what `readers` names.
  void follow(ActivationReaders readers) { readers_ = std::move(readers); }

  bool is_active() const { return watches_ || !readers_.empty(); }

  void made(BufferId activation);
  void begin_forward(Context& context, const LayerPass& pass);
  void end_forward(Context& context, const LayerPass& pass);
  /// `next`: the pass that goes backward after this one.
  void begin_backward(Context& context, const LayerPass& pass, const LayerPass& next);
  void end_backward(const LayerPass& pass);

  /// Returns what a task reads in place of `buffer`: the copy that came back, where there is one.
  BufferId read(Context& context, BufferId buffer);
  void write(Context& context, BufferId buffer);

 private:
  struct Seen {
    bool by_forward = false;  ///< made by one
    bool stays = false;       ///< several backwards read it, or one writes it
    bool is_read = false;
    LayerPass reader = {};
  };

  bool watches_ = false;
  bool in_backward_ = false;
  LayerPass backward_ = {};
  std::vector<BufferId> made_;                          ///< by number
  std::unordered_map<BufferId, std::uint32_t> number_;  ///< by buffer
  std::vector<Seen> seen_;                              ///< by number
  ActivationReaders readers_;
  std::map<std::uint32_t, BufferId> at_host_;                            ///< by number
  std::map<LayerPass, std::unordered_map<BufferId, BufferId>> fetched_;  ///< by the buffer that the forward made
  std::multimap<std::tuple<DType, std::int64_t>, BufferId> free_;        ///< on the host, by type and elements
  std::deque<TaskId> last_out_;                                          ///< of the layers whose copies were lowered last

  void fetch(Context& context, const LayerPass& pass);
  BufferId host_buffer(Context& context, const Buffer& like);
};

}  // namespace tandem::scenarios
