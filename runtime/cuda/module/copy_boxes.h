#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// Elements to be copied between places with gaps: `counts[0]` times `counts[1]` runs of `counts[2]` elements, by strides in
/// elements (the runs are without gaps). Strides may be negative.
struct BoxSide {
  std::int64_t offset = 0;
  std::array<std::int64_t, 2> strides{0, 0};
};
struct Box {
  const DeviceTensor* from = nullptr;
  const DeviceTensor* to = nullptr;
  std::array<std::int64_t, 3> counts{1, 1, 1};
  BoxSide source, destination;
};

/// Copies boxes that do not overlap, of tensors that are all of one type, whatever it is. Throws std::logic_error if they are
/// not.
void copy_boxes(const char* name, const Queue& queue, std::span<const Box> boxes);

}  // namespace tandem
