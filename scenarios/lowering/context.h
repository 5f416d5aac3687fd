#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/expert_bias.h"
#include "scenarios/lowering/offload_activations.h"
#include "scenarios/lowering/ownership.h"
#include "scenarios/lowering/parameters.h"
#include "scenarios/lowering/pass_notes.h"
#include "scenarios/lowering/put_off_weights.h"
#include "scenarios/lowering/tape.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/packed_documents.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Sizes of what one rank holds. Activations are sequence-major: [sequence, batch, width].
struct LocalSizes {
  std::int64_t sequence = 0;        ///< positions on this rank where the width is sharded by tp
  std::int64_t sequence_shard = 0;  ///< positions between those parts: sequence / tp with sp, else sequence
  std::int64_t batch = 0;           ///< sequences of a micro-batch
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t kv_replicas = 1;  ///< tensor-parallel ranks that hold the same key-value heads
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t tp = 1, tp_rank = 0;
  Ownership ownership;         ///< of the optimizer states, and more from ZeRO-2 on
  Ownership expert_ownership;  ///< the same of the experts
  std::int64_t experts = 0;    ///< of each layer on this rank
  std::int64_t expert_ffn = 0;
  std::int64_t etp = 1, etp_rank = 0;
  std::int64_t ep = 1, ep_rank = 0;
  bool sequence_parallel = false;
  // Of the micro-batch that is being lowered, under dynamic context parallelism: of this rank's group.
  std::int64_t cp = 1, cp_rank = 0;
  std::int64_t ring = 1, ring_rank = 0;  ///< groups of context-parallel ranks that deal out heads, or these ranks themselves
  bool zigzag = false;                   ///< context-parallel ranks hold two chunks each
  Positions positions;                   ///< of this rank: `sequence` of those that the ranks share
  std::int64_t first_shared = 0;         ///< where what they share begins in its sequence

  /// Positions that the context-parallel ranks share.
  std::int64_t shared() const { return sequence * cp; }
};

/// A part of the model with layers of its own sizes, which are lowered like those of any model: what they read of the scenario
/// and of this rank's sizes while they are.
struct ModelView {
  Scenario scenario;
  LocalSizes sizes;
  Documents documents = {};  ///< of the sequences, in place of the training's
};

/// A buffer in the layouts that GEMMs read it in.
struct GemmOperand {
  BufferId by_row = no_id, by_column = no_id;
};

/// Operands of GEMMs by what they were cast from: buffers that were made since this was, whose numbers lie together.
class CastOperands {
 public:
  explicit CastOperands(const DagBuilder& builder) : first_(builder.dag().buffers.size()) {}

  /// Returns the operand, which stays at its address, and whether there was none.
  std::pair<GemmOperand*, bool> try_emplace(BufferId from) {
    const std::size_t place = from - first_;
    if (from < first_) throw std::logic_error("casts a buffer of another rank");
    if (place >= all_.size()) all_.resize(place + 1);
    const bool is_new = all_[place].by_row == no_id && all_[place].by_column == no_id;
    return {&all_[place], is_new};
  }
  GemmOperand& operator[](BufferId from) { return *try_emplace(from).first; }
  void clear() { all_.clear(); }

 private:
  std::size_t first_;
  std::deque<GemmOperand> all_;
};

/// Rows and columns of the part of a tensor that a rank takes for a matrix of its own, by the tensor's name.
using MatrixBlocks = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

/// A kernel's operands, kept after the call that names them.
class KeptOperands {
 public:
  KeptOperands(std::span<const BufferId> reads, std::span<const BufferId> writes, std::span<const BufferId> updates);

  std::span<const BufferId> reads() const { return {all_.data(), reads_}; }
  std::span<const BufferId> writes() const { return {all_.data() + reads_, writes_}; }
  std::span<const BufferId> updates() const { return {all_.data() + reads_ + writes_, updates_}; }

 private:
  std::array<BufferId, most_operands> all_;
  std::uint8_t reads_, writes_, updates_;
};

/// What a pass lowers, held back until its turn comes (see turns.h), with the labels of its tasks.
struct Recorded {
  struct Cut {};  ///< where the turn ends
  struct Kernel {
    OpKind op;
    OpAttributes attributes;
    std::string name;
    KeptOperands operands;
  };
  using What = std::variant<Cut, Kernel, std::function<void()>>;
  What what;
  Phase phase = Phase::forward;
  std::int32_t micro_batch = -1;
  std::int16_t layer = -1;
  std::int16_t chunk = -1;
};

/// What was recorded and not lowered yet, in order.
class Recording {
 public:
  Recording() { all_.reserve(usual); }
  /// Makes it in its place: the parts of a `Recorded`.
  template <typename... Part>
  void push(Part&&... parts) {
    all_.emplace_back(std::forward<Part>(parts)...);
  }
  bool empty() const { return next_ == all_.size(); }
  /// Stays where it is until `pop`.
  const Recorded& front() const { return all_[next_]; }
  void pop() {
    if (++next_ < all_.size()) return;
    all_.clear();
    next_ = 0;
  }

 private:
  static constexpr std::size_t usual = 128;  ///< of a layer's pass

  std::vector<Recorded> all_;
  std::size_t next_ = 0;
};

/// The lowering of one rank's step in progress: where it writes, and what the tasks it writes now belong to.
class Context {
 public:
  Context(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank);
  Context(const Context&) = delete;

  DagBuilder& builder;

 private:
  ModelView view_, other_view_;  ///< in force, and not
  bool in_encoder_ = false;

 public:
  // Of the part of the model that is being lowered.
  const Scenario& scenario = view_.scenario;
  const LocalSizes& sizes = view_.sizes;
  const Documents& documents_of_view = view_.documents;
  bool in_encoder() const { return in_encoder_; }
  /// The model with its encoder, whichever is lowered.
  const ModelSpec& whole_model() const { return (in_encoder_ ? other_view_ : view_).scenario.model; }
  /// Between the model and its encoder.
  void change_view() {
    std::swap(view_, other_view_);
    in_encoder_ = !in_encoder_;
  }

  const World& world;
  const RankIndex rank;
  const RoutingAttributes routing;  ///< of each mixture of experts
  std::vector<ChunkParameters> chunks;
  const std::vector<std::int16_t> chunk_order;  ///< in which what each of them needs is lowered, outside of passes
  ExpertBiases expert_biases;                   ///< of the routers of all chunks

  // Where the step being lowered stands among those of the DAG.
  std::int32_t steps_before = 0;
  std::int64_t first_sequence = 0;  ///< of its batch
  bool restores_residuals = false;

  // Labels of the tasks being lowered.
  Phase phase = Phase::forward;
  std::int32_t micro_batch = -1;  ///< a label; begin_micro_batch also sets what is the micro-batch's own
  std::int16_t layer = -1;
  std::int16_t chunk = -1;

  const RecomputeSpec& recompute() const { return scenario.training.recompute; }
  bool recomputes_mlp() const { return recompute().mlp_of(layer); }
  const ChunkParameters& parameters() const { return chunks[static_cast<std::size_t>(chunk)]; }
  CommunicatorId communicator(Slot slot) const { return world.communicator(rank, slot_of_group(slot)); }

  /// Makes the tasks being lowered those of a micro-batch, and the context-parallel ranks those that share it.
  void begin_micro_batch(std::int32_t number);
  /// The number of the micro-batch's first sequence in the global batch.
  std::int64_t sequence_number() const;

  std::map<std::pair<std::int32_t, std::int32_t>, BufferId> sequence_numbers;  ///< by step and micro-batch; see inputs.h
  PackedDocuments packed_documents;
  ActivationOffload offload;
  std::int64_t casts = 0;                                   ///< since delayed scaling last reduced their maxima
  CastOperands cast_operands{builder};                      ///< what was cast so far; see gemm_operand.h
  BufferId last_norm = no_id;                               ///< what the last norm gave
  std::unordered_set<BufferId> inputs_of_norm;              ///< of linear layers, which a norm gave to them alone
  std::unordered_map<BufferId, BufferId> gathered_weights;  ///< by the bucket's narrow weights: in bf16, to be cast to these

  BufferId activation(const Shape& shape);  ///< in the type that activations are kept in
  BufferId activation(const Shape& shape, DType dtype, Scaling scaling = Scaling::none);
  BufferId gathered(const Shape& shape);  ///< what a collective writes for immediate use
  BufferId gathered(const Shape& shape, DType dtype);
  Shape shape_of(BufferId id) const { return builder.dag().buffers[id].shape; }
  DType type_of(BufferId id) const { return builder.dag().buffers[id].dtype; }

  TaskId kernel(OpKind op, const OpAttributes& attributes, std::string_view name, std::initializer_list<BufferId> reads,
                std::initializer_list<BufferId> writes, std::initializer_list<BufferId> updates = {});
  TaskId kernel(OpKind op, const OpAttributes& attributes, std::string_view name, std::span<const BufferId> reads,
                std::span<const BufferId> writes, std::span<const BufferId> updates = {});
  TaskId collective(OpKind op, Slot slot, Stream stream, std::string_view name, BufferId in, BufferId out,
                    Reduction reduction = Reduction::sum, std::optional<Bytes> sent = {});

  /// Gathers sequence shards [s/tp, b, h] into the whole [s, b, h]; `reduce_partial` turns partial sums back into shards (or
  /// into the whole, without sp).
  BufferId gather_sequence(BufferId shard, std::string_view name);
  Shape gathered_shape(BufferId shard) const;
  BufferId reduce_partial(BufferId partial, std::string_view name);
  /// Returns the view of a tensor-parallel rank's shard in the whole.
  BufferId shard_of(BufferId whole, std::int64_t tp_rank);

  /// Adds to the gradient of a parameter, labelled as such, and tells `on_gradient` about it: now, or where the pipeline schedule
  /// splits the backward, in the micro-batch's backward_weight action. So `lower` must own what it captures, and find buffers
  /// that only it needs (such as inputs to gather) itself when `puts_off_weights()`.
  void weight_gradient(ParameterId parameter, std::function<void(Context&, BufferId gradient)> lower);
  bool puts_off_weights() const { return put_off != nullptr; }
  PutOffWeights* put_off = nullptr;  ///< where the action being lowered leaves its weight gradients, if not lowered at once
  /// Lowers the weight gradients that were put off until an exchange is under way.
  void lower_waiting_weights();
  std::function<void(std::size_t chunk, ParameterId parameter)> on_gradient;
  /// Tells it of a parameter of the current chunk, whose gradient a kernel gives beside another's.
  void gave_gradient(ParameterId parameter);

  /// Returns the backward's `x`: what the forward kept, or the copy computed again of what it did not (see `recompute_output`).
  BufferId kept(BufferId x) const {
    const auto copy = copies_.find(x);
    return copy == copies_.end() ? x : copy->second;
  }
  void replace(BufferId x, BufferId copy) { copies_[x] = copy; }

  /// Runs `lower`, which lowers tasks: at once, or if the pass is being recorded, when its turn comes. What asks the builder
  /// which tasks there are, or needs the id of a task, must be issued as one; single kernels and collectives issue themselves,
  /// and return `no_id` where they are recorded.
  template <typename Lower>
  void issue(Lower lower) {
    if (recording == nullptr)
      lower();
    else
      record<std::function<void()>>(std::move(lower));
  }
  /// Lowers what was recorded and is no cut.
  void play(const Recorded& recorded);
  /// Ends a turn of a pass that is being recorded.
  void cut();
  Recording* recording = nullptr;  ///< of the pass being lowered, if it takes turns with another

  /// To be called when an exchange of tokens has been issued: lowers what is to run beside it, and ends the turn.
  void exchange_under_way();
  std::function<void()> beside_exchange;  ///< lowers what is to run beside the next exchange

  /// Lets what leaves the GPU's compute, of gradients, wait for the last kernel so far: under ZeRO-1 different kernels may have
  /// written the slices of different ranks, which all are to do the same.
  void gradients_are_whole() { gradients_whole_ = builder.last_on(rank, Stream::compute); }
  void wait_for_gradients(TaskId reader) { builder.depend(gradients_whole_, reader); }

  /// Makes `task` start after the last compute kernel so far, whose data it need not read.
  void start_after_compute(TaskId task);
  /// Makes the next compute kernel start after `task`.
  void hold_compute_until(TaskId task);
  /// To be called for each compute kernel.
  void wait_for_held(TaskId kernel);
  bool copies_passes = false;  ///< that are alike; see repeated_passes.h
  PassNotes* notes = nullptr;  ///< to be taken of the pass being lowered

 private:
  /// What is recorded is made of `parts`, in its place: kernels are large, and many.
  template <typename What, typename... Part>
  void record(Part&&... parts) {
    recording->push(Recorded::What(std::in_place_type<What>, std::forward<Part>(parts)...), phase, micro_batch, layer, chunk);
  }

  std::vector<TaskId> held_;
  TaskId gradients_whole_ = no_id;
  std::unordered_map<BufferId, BufferId> copies_;

  TaskLabels labels(std::string_view name, Stream stream) const;
  Slot slot_of_group(Slot slot) const;

 public:
  MatrixBlocks muon_blocks = {};  ///< in the unsharded reference of a step whose ranks orthogonalize their shards; see muon.h
};

/// Takes notes of a pass's turn, if any are to be taken.
class NotesScope {
 public:
  NotesScope(Context& context, PassNotes* notes) : context_(context), notes_(notes) {
    context.notes = notes;
    if (notes == nullptr) return;
    if (notes->turns.empty()) notes->casts_before = context.casts;
    notes->enter(context.builder.dag());
  }
  NotesScope(const NotesScope&) = delete;
  ~NotesScope() {
    context_.notes = nullptr;
    if (notes_ == nullptr) return;
    notes_->leave(context_.builder.dag(), {context_.phase, context_.layer, context_.chunk});
    notes_->casts_after = context_.casts;
  }

 private:
  Context& context_;
  PassNotes* notes_;
};

/// Lowers what lies inside for the model's encoder, or for the model, and then goes on as before.
class ViewScope {
 public:
  ViewScope(Context& context, bool encoder) : context_(context), changes_(context.in_encoder() != encoder) {
    if (changes_) context_.change_view();
  }
  ViewScope(const ViewScope&) = delete;
  ~ViewScope() {
    if (changes_) context_.change_view();
  }

 private:
  Context& context_;
  bool changes_;
};

}  // namespace tandem::scenarios
