#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/rotation_device.h"

// Both ways move the bytes of their cost.
namespace tandem {
namespace {

constexpr int threads_of_token = 256;

/// Query, key or value heads: a token's lie one after the other, those of the next token `stride` elements further.
struct Heads {
  const DeviceTensor* tensor;
  std::int64_t offset, stride;
  int count;
};
/// The three kinds, before or after the split.
using Side = std::array<Heads, 3>;

template <typename Element>
struct Move {
  const Element* from;
  Element* to;
  std::int64_t from_stride, to_stride;
  int heads;
  bool turns;
};
template <typename Element>
struct Moves {
  Move<Element> of[3];
};

/// A block moves the heads of one token; a thread n elements of the first half of what turns of a head and those they are paired
/// with, or as many of the two halves of what does not.
template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    move_heads_kernel(Moves<Element> moves, RotationTable rotation, int batch, int head_dim) {
  TANDEM_SHARED(float, cos_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sin_of, RotationTable::most_pairs);
  const std::int64_t token = blockIdx.x;
  rotation.compute(token, batch, cos_of, sin_of);
  __syncthreads();
  const int turning = rotation.pairs, still = head_dim / 2 - turning, per_head = head_dim / 2 / n;
#pragma unroll
  for (int kind = 0; kind < 3; ++kind) {
    const Move<Element> move = moves.of[kind];
    const Element* const from = move.from + token * move.from_stride;
    Element* const to = move.to + token * move.to_stride;
    for (int i = static_cast<int>(threadIdx.x); i < move.heads * per_head; i += threads_of_token) {
      const int first = i % per_head * n;
      const bool turns = first < turning;
      const int at = i / per_head * head_dim + first + (turns ? 0 : turning), pair = at + (turns ? turning : still);
      float low[n], high[n];
      load(from + at, low);
      load(from + pair, high);
      if (move.turns && turns) turn(low, high, cos_of + first, sin_of + first);
      store(to + at, low);
      store(to + pair, high);
    }
  }
}

/// The heads as they lie in qkv, or in q and kv.
Side joint_side(std::span<const DeviceTensor> joint, const SplitHeadsAttributes& attributes, std::int64_t head_dim) {
  const int heads = attributes.heads, kv_heads = attributes.kv_heads;
  const std::int64_t q = heads * head_dim, kv = kv_heads * head_dim;
  if (joint.size() == 1) {
    const DeviceTensor* const qkv = joint.data();
    const std::int64_t stride = q + 2 * kv;
    return {{{qkv, 0, stride, heads}, {qkv, q, stride, kv_heads}, {qkv, q + kv, stride, kv_heads}}};
  }
  return {{{&joint[0], 0, q, heads}, {&joint[1], 0, 2 * kv, kv_heads}, {&joint[1], kv, 2 * kv, kv_heads}}};
}

Side split_side(std::span<const DeviceTensor> heads) {
  Side side;
  for (std::size_t kind = 0; kind < side.size(); ++kind) {
    const Shape& shape = heads[kind].shape;
    side[kind] = {&heads[kind], 0, shape[2] * shape[3], static_cast<int>(shape[2])};
  }
  return side;
}

void copy_heads(const char* name, const Queue& queue, const Side& from, const Side& to, std::int64_t tokens,
                std::int64_t head_dim) {
  std::vector<Box> boxes;
  for (std::size_t kind = 0; kind < from.size(); ++kind)
    boxes.push_back({from[kind].tensor,
                     to[kind].tensor,
                     {1, tokens, from[kind].count * head_dim},
                     {from[kind].offset, {0, from[kind].stride}},
                     {to[kind].offset, {0, to[kind].stride}}});
  copy_boxes(name, queue, boxes);
}

void turn_heads(const char* name, const Queue& queue, const Side& from, const Side& to, const Shape& q,
                const RotationTable& rotation) {
  const dim3 tokens(blocks_along_x(q[0] * q[1]));
  with_type(from[0].tensor->dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    Moves<Element> moves;
    bool aligned = rotation.pairs % vector == 0 && q[3] / 2 % vector == 0;
    for (std::size_t kind = 0; kind < from.size(); ++kind) {
      const Heads &source = from[kind], &destination = to[kind];
      expect_types(of_one_type(*from[0].tensor, *source.tensor, *destination.tensor), "heads are of one type");
      aligned = aligned && are_aligned({*source.tensor, *destination.tensor}, vector);
      moves.of[kind] = {.from = source.tensor->template as<const Element>() + source.offset,
                        .to = destination.tensor->template as<Element>() + destination.offset,
                        .from_stride = source.stride,
                        .to_stride = destination.stride,
                        .heads = source.count,
                        .turns = kind < 2};
    }
    launch(name, queue, {tokens, dim3(threads_of_token)},
           aligned ? move_heads_kernel<vector, Element> : move_heads_kernel<1, Element>, moves, rotation, static_cast<int>(q[1]),
           static_cast<int>(q[3]));
  });
}

void move_heads(const char* name, const Queue& queue, const Side& from, const Side& to, const Shape& q,
                const SplitHeadsAttributes& attributes, Direction direction) {
  if (!attributes.rotate) return copy_heads(name, queue, from, to, q[0] * q[1], q[3]);
  RotationTable rotation(rotated_of(attributes, q[3]), attributes.base, attributes.positions, direction);
  Scratch scratch(queue);
  rotation.places = put_places(name, queue, scratch, attributes.documents, attributes.positions, q[1]);
  turn_heads(name, queue, from, to, q, rotation);
}

void turn_in_place(OpKind op, const Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any,
                   Direction direction) {
  check_shapes(op, operands, any);
  const auto heads_of = [](const DeviceTensor& x) { return Heads{&x, 0, x.shape[2] * x.shape[3], static_cast<int>(x.shape[2])}; };
  Side side{heads_of(operands[0]), heads_of(operands[1]), heads_of(operands[1])};
  side[2].count = 0;  // no values
  move_heads(op == OpKind::rotary ? "rotary" : "rotary_backward", queue, side, side, operands[0].shape,
             std::get<SplitHeadsAttributes>(any), direction);
}

}  // namespace

void split_heads_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::split_heads, operands, any);
  const auto& attributes = std::get<SplitHeadsAttributes>(any);
  const std::span<const DeviceTensor> joint = operands.first(operands.size() - 3), heads = operands.last(3);
  const Shape& q = heads[0].shape;
  move_heads("split_heads", queue, joint_side(joint, attributes, q[3]), split_side(heads), q, attributes, Direction::forward);
}

void split_heads_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::split_heads_backward, operands, any);
  const auto& attributes = std::get<SplitHeadsAttributes>(any);
  const std::span<const DeviceTensor> heads = operands.first(3), joint = operands.subspan(3);
  const Shape& q = heads[0].shape;
  move_heads("split_heads_backward", queue, split_side(heads), joint_side(joint, attributes, q[3]), q, attributes,
             Direction::backward);
}

std::size_t split_heads_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SplitHeadsAttributes>(any);
  return place_table_scratch(attributes.documents, attributes.positions.count(), operands[0].shape[1]);
}

void rotary_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  turn_in_place(OpKind::rotary, queue, operands, any, Direction::forward);
}

void rotary_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  turn_in_place(OpKind::rotary_backward, queue, operands, any, Direction::backward);
}

}  // namespace tandem
