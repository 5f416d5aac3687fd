#include <algorithm>
#include <limits>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/operands.h"

namespace tandem {
namespace {

constexpr std::size_t boxes_per_launch = 8;

/// A box by its addresses; strides and the length of a run in bytes. A block's threads lie along a run, a power of two of them,
/// and the others take further runs; each moves up to words_of_thread words of a run. Short runs beside long ones so get blocks
/// of their own shape.
struct Run {
  const char* from;
  char* to;
  unsigned counts[2];
  std::int64_t from_strides[2], to_strides[2];
  std::int64_t length;
  unsigned first_block, blocks_of_run, threads_along_run;
};
struct Runs {
  Run of[boxes_per_launch];
  int count;
};

constexpr int words_of_thread = 4;

template <int word_bytes>
__global__ void __launch_bounds__(threads_of_elementwise) copy_boxes_kernel(Runs runs) {
  int of = 0;
  while (of + 1 < runs.count && blockIdx.x >= runs.of[of + 1].first_block) ++of;
  const Run& box = runs.of[of];
  const unsigned block = blockIdx.x - box.first_block, along = box.threads_along_run;
  const unsigned row_of_blocks = block / box.blocks_of_run, place = block - row_of_blocks * box.blocks_of_run;
  const unsigned run = row_of_blocks * (threads_of_elementwise / along) + threadIdx.x / along;
  if (run >= box.counts[0] * box.counts[1]) return;
  const std::int64_t outer = run / box.counts[1], inner = run % box.counts[1];
  const char* const from = box.from + outer * box.from_strides[0] + inner * box.from_strides[1];
  char* const to = box.to + outer * box.to_strides[0] + inner * box.to_strides[1];
  const std::int64_t first = (std::int64_t{place} * along * words_of_thread + threadIdx.x % along) * word_bytes;
  alignas(widest_access) char words[words_of_thread][word_bytes];  // all under way at once
#pragma unroll
  for (int i = 0; i < words_of_thread; ++i) {
    const std::int64_t at = first + std::int64_t{i} * along * word_bytes;
    if (at < box.length) copy_aligned<word_bytes>(words[i], from + at);
  }
#pragma unroll
  for (int i = 0; i < words_of_thread; ++i) {
    const std::int64_t at = first + std::int64_t{i} * along * word_bytes;
    if (at < box.length) copy_aligned<word_bytes>(to + at, words[i]);
  }
}

Run run_of(const Box& box) {
  const auto element = static_cast<std::int64_t>(size_of(box.from->dtype));
  const BoxSide &source = box.source, &destination = box.destination;
  return {.from = box.from->as<const char>() + source.offset * element,
          .to = box.to->as<char>() + destination.offset * element,
          .counts = {static_cast<unsigned>(box.counts[0]), static_cast<unsigned>(box.counts[1])},
          .from_strides = {source.strides[0] * element, source.strides[1] * element},
          .to_strides = {destination.strides[0] * element, destination.strides[1] * element},
          .length = box.counts[2] * element,
          .first_block = 0,
          .blocks_of_run = 1,
          .threads_along_run = 1};
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
  Runs runs{};
  int word = widest_access;
  for (const Box& box : boxes) {
    if (box.counts[0] * box.counts[1] * box.counts[2] == 0) continue;
    if (box.counts[0] * box.counts[1] > std::numeric_limits<std::int32_t>::max())
      throw std::logic_error("too many runs to copy at once");
    runs.of[runs.count] = run_of(box);
    word = std::min(word, word_of(runs.of[runs.count++]));
  }
  std::int64_t blocks = 0;
  for (int i = 0; i < runs.count; ++i) {
    Run& run = runs.of[i];
    const std::int64_t words = run.length / word;
    run.threads_along_run = threads_along_row(words);
    run.blocks_of_run = blocks_along_x(divide_up(words, std::int64_t{run.threads_along_run} * words_of_thread));
    run.first_block = blocks_along_x(blocks);
    blocks += divide_up(std::int64_t{run.counts[0]} * run.counts[1], threads_of_elementwise / run.threads_along_run) *
              run.blocks_of_run;
  }
  launch(name, queue, {dim3(blocks_along_x(blocks)), dim3(threads_of_elementwise)}, kernel_for(word), runs);
}

}  // namespace

void copy_boxes(const char* name, const Queue& queue, std::span<const Box> boxes) {
  for (const Box& box : boxes)
    expect_types(of_one_type(*boxes.front().from, *box.from, *box.to), "elements that are only moved keep their type");
  for (std::size_t i = 0; i < boxes.size(); i += boxes_per_launch)
    launch_boxes(name, queue, boxes.subspan(i, std::min(boxes_per_launch, boxes.size() - i)));
}

}  // namespace tandem
