#pragma once

#include "runtime/base/host_device.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// The windows of compress_keys, on host and GPU.
struct CompressSizes {
  std::int64_t windows = 0, batch = 0, width = 0, rows_width = 0;
  std::int32_t ratio = 1;
  bool overlap = false;

  CompressSizes(const Shape& c, const Shape& bias, const Shape& k, const CompressAttributes& attributes)
      : windows(k[0]),
        batch(k[1]),
        width(columns_of(k)),
        rows_width(columns_of(c)),
        ratio(attributes.ratio),
        overlap(attributes.overlap) {
    expect_shapes(c == Shape(windows * ratio, batch, rows_width), "compress_keys makes a key of each `ratio` positions");
    expect_shapes(rows_width == (overlap ? 2 : 1) * width, "rows are as wide as a key, or two where windows overlap");
    expect_shapes(bias.elements() == ratio * rows_width, "compress_keys has a bias for each place in a window");
  }

  /// Places in a window, from -ratio or 0 on: those before 0 are of the window before.
  TANDEM_HOST_DEVICE std::int32_t first_place(std::int64_t window) const { return overlap && window > 0 ? -ratio : 0; }
  TANDEM_HOST_DEVICE std::int64_t column(std::int32_t place, std::int64_t e) const {
    return overlap && place >= 0 ? width + e : e;
  }
  /// Of an element of c or z.
  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t window, std::int32_t place, std::int64_t b, std::int64_t e) const {
    return ((window * ratio + place) * batch + b) * rows_width + column(place, e);
  }
  TANDEM_HOST_DEVICE std::int64_t of_bias(std::int32_t place, std::int64_t e) const {
    return (place < 0 ? place + ratio : place) * rows_width + column(place, e);
  }
  TANDEM_HOST_DEVICE std::int64_t of_key(std::int64_t window, std::int64_t b, std::int64_t e) const {
    return (window * batch + b) * width + e;
  }
};

}  // namespace tandem
