#include <vector>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Both move the bytes of their cost.
namespace tandem {
namespace {

struct Place {
  BoxSide in_parts, in_whole;
  std::array<std::int64_t, 3> counts;
};

/// Where the ranks hold a tensor of so many elements per position: each rank's share begins `first` elements into its part.
std::vector<Place> places(const SequenceAttributes& attributes, std::int64_t positions, std::int64_t width, std::int64_t part,
                          std::int64_t first) {
  const std::int64_t ranks = attributes.ranks, held = positions / ranks * width;
  if (!attributes.zigzag) return {{{first, {0, part}}, {0, {0, held}}, {1, ranks, held}}};
  const std::int64_t chunk = held / 2;  // rank r holds the chunks r and 2 ranks - 1 - r
  return {{{first, {0, part}}, {0, {0, chunk}}, {1, ranks, chunk}},
          {{first + chunk, {0, part}}, {(2 * ranks - 1) * chunk, {0, -chunk}}, {1, ranks, chunk}}};
}

enum class Direction {
  split,
  join
};

void copy_sequence(const char* name, const Queue& queue, const DeviceTensor& parts, std::span<const DeviceTensor> wholes,
                   const OpAttributes& any, Direction direction) {
  const auto& attributes = std::get<SequenceAttributes>(any);
  const std::int64_t positions = wholes.front().shape[0], part = parts.shape.elements() / attributes.ranks;
  std::vector<Box> boxes;
  std::int64_t first = 0;
  for (const DeviceTensor& whole : wholes) {
    const std::int64_t width = whole.shape.elements() / positions;
    for (const Place& place : places(attributes, positions, width, part, first)) {
      if (direction == Direction::join)
        boxes.push_back({&parts, &whole, place.counts, place.in_parts, place.in_whole});
      else
        boxes.push_back({&whole, &parts, place.counts, place.in_whole, place.in_parts});
    }
    first += positions / attributes.ranks * width;
  }
  copy_boxes(name, queue, boxes);
}

}  // namespace

void join_sequence_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  check_shapes(OpKind::join_sequence, operands, attributes);
  copy_sequence("join_sequence", queue, operands.front(), operands.subspan(1), attributes, Direction::join);
}

void split_sequence_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  check_shapes(OpKind::split_sequence, operands, attributes);
  copy_sequence("split_sequence", queue, operands.back(), operands.first(operands.size() - 1), attributes, Direction::split);
}

}  // namespace tandem
