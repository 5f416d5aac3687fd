#include "scenarios/lowering/adafactor.h"

#include <set>
#include <stdexcept>
#include <vector>

#include "runtime/contents/parameter_name.h"
#include "runtime/ops/adafactor.h"
#include "scenarios/lowering/data_groups.h"

namespace tandem::scenarios {
namespace {

/// The first step of those lowered: states are those of a run under way (runtime/contents/initial_contents.cpp), whose means move
/// slowly.
constexpr std::int32_t first_step = 10;

/// Buckets whose sums travel together: those of experts, or all others.
class AdafactorGroup {
 public:
  AdafactorGroup(Context& context, bool experts) : context_(context), experts_(experts) {
    for (const std::int16_t chunk : context.chunk_order)
      for (const Bucket& bucket : context.chunks[static_cast<std::size_t>(chunk)].buckets())
        if (!bucket.frozen && (bucket.kind == ParameterKind::expert) == experts) add(chunk, bucket);
    allocate();
  }

  void lower(BufferId norm) {
    if (parts_.empty()) return;
    move_states(norm);
    for (const Part& part : parts_) {
      context_.chunk = part.chunk;
      kernel(part, OpKind::adafactor_norms, {part.bucket->gradient_slice, norm, state(part), part.bucket->master},
             {part.squares});
    }
    context_.chunk = -1;
    add_up_over_owners(squares_);
    if (shards() > 1) add_up_over_shards(squares_);
    for (const Part& part : parts_) {
      context_.chunk = part.chunk;
      kernel(part, OpKind::adafactor_update, {part.bucket->gradient_slice, norm, state(part), part.squares},
             {part.bucket->weight_slice}, {part.bucket->master});
    }
    context_.chunk = -1;
  }

 private:
  struct Part {
    std::int16_t chunk;
    const Bucket* bucket;
    AdafactorAttributes attributes;
    AdafactorLayout layout;
    BufferId sums = no_id, squares = no_id;
  };
  Context& context_;
  bool experts_;
  std::vector<Part> parts_;
  BufferId sums_ = no_id, squares_ = no_id;  ///< of all parts

  std::int64_t shards() const { return experts_ ? context_.sizes.etp : context_.sizes.tp; }
  BufferId state(const Part& part) const { return part.attributes.factored ? part.bucket->factors : part.bucket->variance; }

  void add(std::int16_t chunk, const Bucket& bucket) {
    AdafactorAttributes attributes{
        .step = first_step + context_.steps_before,
        .factored = bucket.factors != no_id,
        .first = ownership_of(context_, bucket.kind).slice * context_.shape_of(bucket.gradient_slice).elements()};
    attributes.pieces = bucket.pieces;
    for (AdafactorPiece& piece : attributes.pieces) {
      const std::int64_t parts = piece.tensor_rows / piece.rows * (piece.tensor_columns / piece.columns);
      piece.copies = static_cast<std::int32_t>(shards() / parts);
    }
    AdafactorLayout layout(attributes);
    parts_.push_back({chunk, &bucket, std::move(attributes), std::move(layout)});
  }

  /// The sums of a part are no parameter, and live in the optimizer's phase alone.
  void allocate() {
    std::int64_t sums = 0, squares = 0;
    for (const Part& part : parts_) {
      sums += part.layout.sums;
      squares += 2 * part.layout.tensors;
    }
    if (sums > 0) sums_ = context_.activation(Shape(sums), DType::f32);
    if (squares > 0) squares_ = context_.activation(Shape(squares), DType::f32);
    sums = squares = 0;
    for (Part& part : parts_) {
      if (part.attributes.factored) part.sums = context_.builder.view(sums_, sums, Shape(part.layout.sums));
      part.squares = context_.builder.view(squares_, squares, Shape(2 * part.layout.tensors));
      sums += part.layout.sums;
      squares += 2 * part.layout.tensors;
    }
  }

  void kernel(const Part& part, OpKind op, std::initializer_list<BufferId> reads, std::initializer_list<BufferId> writes,
              std::initializer_list<BufferId> updates = {}) {
    context_.kernel(op, part.attributes, "adafactor", reads, writes, updates);
  }

  void move_states(BufferId norm) {
    for (const Part& part : parts_) {
      context_.chunk = part.chunk;
      if (part.attributes.factored)
        kernel(part, OpKind::adafactor_sums, {part.bucket->gradient_slice, norm}, {part.sums});
      else
        kernel(part, OpKind::adafactor_variance, {part.bucket->gradient_slice, norm}, {}, {part.bucket->variance});
    }
    context_.chunk = -1;
    if (sums_ != no_id) add_up_over_owners(sums_);
    for (const Part& part : parts_) {
      if (!part.attributes.factored) continue;
      context_.chunk = part.chunk;
      if (part.layout.shared > 0) add_up_over_shards(context_.builder.view(part.sums, 0, Shape(part.layout.shared)));
      kernel(part, OpKind::adafactor_factors, {part.sums}, {}, {part.bucket->factors});
    }
    context_.chunk = -1;
  }

  void add_up_over_owners(BufferId sums) {
    add_up_slices(context_, experts_ ? ParameterKind::expert : ParameterKind::sharded, sums, "adafactor");
  }

  void add_up_over_shards(BufferId sums) {
    context_.collective(OpKind::all_reduce, experts_ ? Slot::expert_tensor : Slot::tp, Stream::tp, "adafactor", sums, sums);
  }
};

}  // namespace

bool is_factored(const std::string& tensor) { return !is_vector(tensor) && !is_convolution(tensor); }

void update_by_adafactor(Context& context, BufferId norm) {
  for (const bool experts : {false, true}) AdafactorGroup(context, experts).lower(norm);
}

}  // namespace tandem::scenarios
