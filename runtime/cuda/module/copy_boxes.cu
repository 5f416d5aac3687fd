#include <algorithm>
#include <limits>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/operands.h"

namespace tandem {
namespace {

constexpr std::size_t boxes_per_launch = 8;

/// A box by its addresses; strides and the length of a run in bytes, then in words.
struct Run {
  const char* from;
  char* to;
  unsigned counts[2];
  std::int64_t from_strides[2], to_strides[2];
  std::int64_t length;
};
struct Runs {
  Run of[boxes_per_launch];
};

template <int word_bytes>
__global__ void copy_boxes_kernel(Runs runs) {
  const Run& box = runs.of[blockIdx.z];
  const unsigned run = blockIdx.x * blockDim.y + threadIdx.y;
  if (run >= box.counts[0] * box.counts[1]) return;
  const std::int64_t outer = run / box.counts[1], inner = run % box.counts[1];
  const char* const from = box.from + outer * box.from_strides[0] + inner * box.from_strides[1];
  char* const to = box.to + outer * box.to_strides[0] + inner * box.to_strides[1];
  const std::int64_t stride = std::int64_t{gridDim.y} * blockDim.x * word_bytes;
#pragma unroll 4
  for (std::int64_t i = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * word_bytes; i < box.length; i += stride)
    copy_aligned<word_bytes>(to + i, from + i);
}

Run run_of(const Box& box) {
  const auto element = static_cast<std::int64_t>(size_of(box.from->dtype));
  const BoxSide &source = box.source, &destination = box.destination;
  return {.from = box.from->as<const char>() + source.offset * element,
          .to = box.to->as<char>() + destination.offset * element,
          .counts = {static_cast<unsigned>(box.counts[0]), static_cast<unsigned>(box.counts[1])},
          .from_strides = {source.strides[0] * element, source.strides[1] * element},
          .to_strides = {destination.strides[0] * element, destination.strides[1] * element},
          .length = box.counts[2] * element};
}

/// The widest access to which all addresses of the run are aligned.
int word_of(const Run& run) {
  std::uintptr_t bits = std::bit_cast<std::uintptr_t>(run.from) | std::bit_cast<std::uintptr_t>(run.to) |
                        static_cast<std::uintptr_t>(run.length) | widest_access;
  for (const int i : {0, 1}) {
    if (run.counts[i] > 1) bits |= static_cast<std::uintptr_t>(run.from_strides[i] | run.to_strides[i]);
  }
  return 1 << std::countr_zero(bits);
}

using Kernel = void(Runs);

Kernel* kernel_for(int word) {
  switch (word) {
    case 1:
      return copy_boxes_kernel<1>;
    case 2:
      return copy_boxes_kernel<2>;
    case 4:
      return copy_boxes_kernel<4>;
    case 8:
      return copy_boxes_kernel<8>;
    default:
      return copy_boxes_kernel<16>;
  }
}

void launch_boxes(const char* name, const Queue& queue, std::span<const Box> boxes) {
  constexpr std::int64_t most_blocks_along_y = 65535;
  Runs runs{};
  int word = widest_access;
  std::int64_t most_runs = 0, longest = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    Run& run = runs.of[i] = run_of(boxes[i]);
    word = std::min(word, word_of(run));
    most_runs = std::max(most_runs, boxes[i].counts[0] * boxes[i].counts[1]);
    longest = std::max(longest, run.length);
  }
  if (most_runs > std::numeric_limits<std::int32_t>::max()) throw std::logic_error("too many runs to copy at once");
  const std::int64_t words = divide_up(longest, word);
  const unsigned along_run = threads_along_row(words), runs_of_block = threads_of_elementwise / along_run;
  const dim3 blocks(blocks_along_x(divide_up(most_runs, runs_of_block)),
                    static_cast<unsigned>(std::min(divide_up(words, along_run), most_blocks_along_y)),
                    static_cast<unsigned>(boxes.size()));
  launch(name, queue, {blocks, dim3(along_run, runs_of_block)}, kernel_for(word), runs);
}

}  // namespace

void copy_boxes(const char* name, const Queue& queue, std::span<const Box> boxes) {
  for (const Box& box : boxes)
    expect_types(of_one_type(*boxes.front().from, *box.from, *box.to), "elements that are only moved keep their type");
  for (std::size_t i = 0; i < boxes.size(); i += boxes_per_launch)
    launch_boxes(name, queue, boxes.subspan(i, std::min(boxes_per_launch, boxes.size() - i)));
}

}  // namespace tandem
