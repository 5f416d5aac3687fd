#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// The sizes of lightning_attention, and where its operands' elements lie; for host and device kernels alike.
struct LightningSizes {
  std::int64_t positions = 0, batch = 0, heads = 0, head_dim = 0, chunk = 0;
  std::int64_t first_head = 0, heads_of_model = 0;
  float decay = 0;

  LightningSizes(const Shape& mixed, const Shape& out, const LightningAttributes& attributes)
      : positions(out[0]),
        batch(out[1]),
        heads(columns_of(out) / attributes.head_dim),
        head_dim(attributes.head_dim),
        chunk(attributes.chunk),
        first_head(attributes.first_head),
        heads_of_model(attributes.heads),
        decay(attributes.decay) {
    expect_shapes(mixed.rank == 3 && out.rank == 3 && rows_of(mixed) == rows_of(out),
                  "lightning_attention's operands have the same positions and batch");
    expect_shapes(heads > 0 && columns_of(out) == heads * head_dim && columns_of(mixed) == 3 * columns_of(out),
                  "lightning_attention reads q | k | v of whole heads");
    expect_shapes(first_head + heads <= heads_of_model, "lightning_attention's heads are among those of the model");
    expect_shapes(chunk > 0, "lightning_attention's chunks have positions");
  }

  TANDEM_HOST_DEVICE std::int64_t inner() const { return heads * head_dim; }
  TANDEM_HOST_DEVICE std::int64_t state() const { return head_dim * head_dim; }
  TANDEM_HOST_DEVICE std::int64_t chunks() const { return (positions + chunk - 1) / chunk; }
  TANDEM_HOST_DEVICE std::int64_t chunk_end(std::int64_t c) const {
    return (c + 1) * chunk < positions ? (c + 1) * chunk : positions;
  }
  /// The exponent of 2 in a head's rate.
  TANDEM_HOST_DEVICE double exponent(std::int64_t h) const {
    return -8.0 * static_cast<double>(first_head + h + 1) / static_cast<double>(heads_of_model);
  }

  // Offsets of the first element of a head at position t.
  TANDEM_HOST_DEVICE std::int64_t q(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return (t * batch + b) * 3 * inner() + h * head_dim;
  }
  TANDEM_HOST_DEVICE std::int64_t k(std::int64_t t, std::int64_t b, std::int64_t h) const { return q(t, b, h) + inner(); }
  TANDEM_HOST_DEVICE std::int64_t v(std::int64_t t, std::int64_t b, std::int64_t h) const { return q(t, b, h) + 2 * inner(); }
  TANDEM_HOST_DEVICE std::int64_t out(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return ((t * batch + b) * heads + h) * head_dim;
  }
};

}  // namespace tandem
