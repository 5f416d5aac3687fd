#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/ops/documents.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// The sizes of delta_rule, and where its operands' elements lie; for host and device kernels alike.
struct DeltaSizes {
  std::int64_t positions = 0, batch = 0, heads = 0, key_heads = 0, key_dim = 0, value_dim = 0, chunk = 0;
  std::int64_t first_head = 0, heads_of_parameters = 0;
  TokenOrder order;  ///< kernels with documents set it

  DeltaSizes(const Shape& mixed, const Shape& projected, const Shape& parameters, const Shape& out,
             const DeltaRuleAttributes& attributes)
      : positions(out[0]),
        batch(out[1]),
        heads(columns_of(out) / attributes.value_dim),
        key_heads(attributes.key_heads),
        key_dim(attributes.key_dim),
        value_dim(attributes.value_dim),
        chunk(attributes.chunk),
        first_head(attributes.first_head),
        heads_of_parameters(parameters.elements() / 2) {
    expect_shapes(mixed.rank == 3 && projected.rank == 3 && out.rank == 3 && rows_of(mixed) == rows_of(out) &&
                      rows_of(projected) == rows_of(out),
                  "delta_rule's operands have the same positions and batch");
    expect_shapes(columns_of(out) == heads * value_dim && heads > 0 && heads % key_heads == 0,
                  "delta_rule has whole value heads, equally many for each key head");
    expect_shapes(columns_of(mixed) == mixed_width() && columns_of(projected) == projected_width(),
                  "delta_rule reads q | k | v and q | k | v | z | b | a");
    expect_shapes(parameters.elements() % 2 == 0 && first_head + heads <= heads_of_parameters,
                  "delta_rule has A_log and dt_bias of each head");
    expect_shapes(chunk > 0, "delta_rule's chunks have positions");
  }

  TANDEM_HOST_DEVICE std::int64_t mixed_width() const { return 2 * key_heads * key_dim + heads * value_dim; }
  /// z, which the norm reads, stands before b and a.
  TANDEM_HOST_DEVICE std::int64_t projected_width() const { return mixed_width() + heads * value_dim + 2 * heads; }
  TANDEM_HOST_DEVICE std::int64_t chunks() const { return (positions + chunk - 1) / chunk; }
  TANDEM_HOST_DEVICE std::int64_t chunk_end(std::int64_t c) const {
    return (c + 1) * chunk < positions ? (c + 1) * chunk : positions;
  }
  TANDEM_HOST_DEVICE std::int64_t key_head(std::int64_t h) const { return h / (heads / key_heads); }

  // Offsets of the first element of a head at token t.
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t t, std::int64_t b) const { return order.position(b, t) * batch + b; }
  TANDEM_HOST_DEVICE std::int64_t q(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * mixed_width() + key_head(h) * key_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t k(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return q(t, b, h) + key_heads * key_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t v(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return row(t, b) * mixed_width() + 2 * key_heads * key_dim + h * value_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t gate(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return (row(t, b) + 1) * projected_width() - 2 * heads + h;
  }
  TANDEM_HOST_DEVICE std::int64_t step(std::int64_t t, std::int64_t b, std::int64_t h) const { return gate(t, b, h) + heads; }
  TANDEM_HOST_DEVICE std::int64_t out(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return (row(t, b) * heads + h) * value_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t a_log(std::int64_t h) const { return first_head + h; }
  TANDEM_HOST_DEVICE std::int64_t dt_bias(std::int64_t h) const { return heads_of_parameters + first_head + h; }
};

/// Added to the sum of squares of a query or a key before the root.
inline constexpr float delta_rule_epsilon = 1e-6F;

}  // namespace tandem
