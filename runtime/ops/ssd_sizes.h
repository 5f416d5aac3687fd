#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/divide_up.h"
#include "runtime/base/host_device.h"
#include "runtime/ops/documents.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// The sizes of ssd_scan, and where its operands' elements lie; for host and device kernels alike.
struct SsdSizes {
  std::int64_t positions = 0, batch = 0, heads = 0, head_dim = 0, groups = 0, state = 0, chunk = 0;
  std::int64_t first_head = 0, heads_of_parameters = 0;
  TokenOrder order;  ///< kernels with documents set it

  SsdSizes(const Shape& mixed, const Shape& projected, const Shape& parameters, const Shape& out, const SsdAttributes& attributes)
      : positions(out[0]),
        batch(out[1]),
        heads(columns_of(out) / attributes.head_dim),
        head_dim(attributes.head_dim),
        groups(attributes.groups),
        state(attributes.state),
        chunk(attributes.chunk),
        first_head(attributes.first_head),
        heads_of_parameters(parameters.elements() / 3) {
    expect_shapes(mixed.rank == 3 && projected.rank == 3 && out.rank == 3 && rows_of(mixed) == rows_of(out) &&
                      rows_of(projected) == rows_of(out),
                  "ssd_scan's operands have the same positions and batch");
    expect_shapes(columns_of(out) == inner() && heads > 0 && heads % groups == 0, "ssd_scan has whole heads in equal groups");
    expect_shapes(columns_of(mixed) == mixed_width() && columns_of(projected) == projected_width(),
                  "ssd_scan reads x | B | C and z | x | B | C | dt");
    expect_shapes(parameters.elements() % 3 == 0 && first_head + heads <= heads_of_parameters,
                  "ssd_scan has A_log, dt_bias and D of each head");
    expect_shapes(chunk > 0, "ssd_scan's chunks have positions");
  }

  TANDEM_HOST_DEVICE std::int64_t inner() const { return heads * head_dim; }
  TANDEM_HOST_DEVICE std::int64_t mixed_width() const { return inner() + 2 * groups * state; }
  TANDEM_HOST_DEVICE std::int64_t projected_width() const { return 2 * inner() + 2 * groups * state + heads; }
  TANDEM_HOST_DEVICE std::int64_t chunks() const { return (positions + chunk - 1) / chunk; }
  TANDEM_HOST_DEVICE std::int64_t chunk_end(std::int64_t c) const {
    return (c + 1) * chunk < positions ? (c + 1) * chunk : positions;
  }

  // Offsets of the first element of a head at token t.
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t t, std::int64_t b) const { return order.position(b, t) * batch + b; }
  TANDEM_HOST_DEVICE std::int64_t x(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * mixed_width() + h * head_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t b_of(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * mixed_width() + inner() + h / (heads / groups) * state;
  }
  TANDEM_HOST_DEVICE std::int64_t c_of(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return b_of(t, b, h) + groups * state;
  }
  TANDEM_HOST_DEVICE std::int64_t z(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * projected_width() + h * head_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t dt(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * projected_width() + projected_width() - heads + h;
  }
  TANDEM_HOST_DEVICE std::int64_t y(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * inner() + h * head_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t a_log(std::int64_t h) const { return first_head + h; }
  TANDEM_HOST_DEVICE std::int64_t dt_bias(std::int64_t h) const { return heads_of_parameters + first_head + h; }
  TANDEM_HOST_DEVICE std::int64_t skip(std::int64_t h) const { return 2 * heads_of_parameters + first_head + h; }
};

}  // namespace tandem
