#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/rotation_device.h"

// Both ways move the bytes of their cost.
namespace tandem {
namespace {

constexpr int threads_of_token = 128, items_of_thread = 3;

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
  int items;  ///< of a token
};

/// What a thread moves at a time: n elements of the first half of what turns of a head and those they are paired with, or as
/// many of the two halves of what does not.
template <int n, typename Element>
struct MovedItem {
  alignas(widest_access) Element low[n], high[n];
  Element *to_low, *to_high;
  int turned_pair;  ///< the first; -1: they do not turn

  TANDEM_DEVICE void load(const Moves<Element>& moves, std::int64_t token, int item, int turning, int head_dim) {
    const int per_head = head_dim / 2 / n, still = head_dim / 2 - turning;
    int head = item / per_head, kind = 0;
    const int first = (item - head * per_head) * n;
    if (head >= moves.of[0].heads) {
      head -= moves.of[0].heads;
      kind = head >= moves.of[1].heads ? 2 : 1;
      if (kind == 2) head -= moves.of[1].heads;
    }
    // Not by an index: the table would be copied to the thread's own memory.
    const Move<Element> move = kind == 0 ? moves.of[0] : kind == 1 ? moves.of[1] : moves.of[2];
    const bool turns = first < turning;
    const int at = head * head_dim + first + (turns ? 0 : turning), pair = at + (turns ? turning : still);
    turned_pair = turns && move.turns ? first : -1;
    const Element* const from = move.from + token * move.from_stride;
    Element* const to = move.to + token * move.to_stride;
    copy_aligned<n* static_cast<int>(sizeof(Element))>(low, from + at);
    copy_aligned<n* static_cast<int>(sizeof(Element))>(high, from + pair);
    to_low = to + at;
    to_high = to + pair;
  }

  TANDEM_DEVICE void turn_and_store(const float* cos_of, const float* sin_of) {
    if (turned_pair >= 0) {
      float lows[n], highs[n];
      tandem::load(low, lows);
      tandem::load(high, highs);
      turn(lows, highs, cos_of + turned_pair, sin_of + turned_pair);
      store(to_low, lows);
      store(to_high, highs);
    } else {
      copy_aligned<n* static_cast<int>(sizeof(Element))>(to_low, low);
      copy_aligned<n* static_cast<int>(sizeof(Element))>(to_high, high);
    }
  }
};

/// A block moves the heads of one token; its threads load some items each, all under way at once and, at first, while the block
/// computes the rotations.
template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    move_heads_kernel(Moves<Element> moves, RotationTable rotation, int batch, int head_dim) {
  TANDEM_SHARED(float, cos_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sin_of, RotationTable::most_pairs);
  const std::int64_t token = blockIdx.x;
  MovedItem<n, Element> items[items_of_thread];
  for (int base = 0; base < moves.items; base += threads_of_token * items_of_thread) {
    const int first = base + static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < items_of_thread; ++i) {
      const int item = first + i * threads_of_token;
      if (item < moves.items) items[i].load(moves, token, item, rotation.pairs, head_dim);
    }
    if (base == 0) {
      rotation.compute(token, batch, cos_of, sin_of);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < items_of_thread; ++i)
      if (first + i * threads_of_token < moves.items) items[i].turn_and_store(cos_of, sin_of);
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
    const std::int64_t all_heads = std::int64_t{from[0].count} + from[1].count + from[2].count;
    moves.items = static_cast<int>(all_heads * (q[3] / 2 / (aligned ? vector : 1)));
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
