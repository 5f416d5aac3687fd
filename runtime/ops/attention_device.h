#pragma once

#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/shared_tile.h"
#include "runtime/ops/attention_mask.h"
#include "runtime/ops/attention_sizes.h"
#include "runtime/ops/documents_device.h"

namespace tandem {

// What the kernels of attention and of its backward share.

/// Positions, as kernels read them.
struct PositionRuns {
  int start[2], first_length;

  TANDEM_DEVICE int at(int i) const { return i < first_length ? start[0] + i : start[1] + i - first_length; }
  /// The smallest and the largest of [first, end), which is not empty.
  TANDEM_DEVICE int smallest(int first, int end) const {
    if (end <= first_length || first >= first_length) return at(first);
    return smaller(at(first), start[1]);
  }
  TANDEM_DEVICE int largest(int first, int end) const {
    if (end <= first_length || first >= first_length) return at(end - 1);
    return larger(at(first_length - 1), at(end - 1));
  }
};

/// Whether the queries of a block see the keys of a block.
enum class Visibility {
  none,
  some,
  all
};

/// AttentionSizes and AttentionAttributes, as kernels read them; see PackedAttentionShape.
struct AttentionShape {
  int queries, keys, micro_batch, heads, kv_heads, head_dim, value_dim;
  float scale, softcap;
  AttentionMask mask;
  PositionRuns query_positions, key_positions;

  static constexpr bool packed = false;

  TANDEM_DEVICE bool sees(int /*b*/, int query, int key) const {
    return !mask.causal || mask.sees(query_positions.at(query), key_positions.at(key));
  }

  /// q k^T under the soft cap, still without the scale.
  TANDEM_DEVICE float capped(float product) const {
    return softcap > 0 ? softcap / scale * tanhf(product * scale / softcap) : product;
  }
  /// The same within 1e-7 of the cap, in fewer registers; the cap is not 0.
  TANDEM_DEVICE float capped_fast(float product) const {
    const float squared = exp_fast(product * (2 * scale / softcap));  // of e^x
    return softcap / scale * (1 - divide_fast(2, squared + 1));
  }
  /// The derivative of that by the product, from the probability exp(score - lse) of a query whose lse is `log_sum` / log2(e):
  /// the score is known from it, so that nobody need keep it. 0 where the probability is, which makes the gradient 0.
  TANDEM_DEVICE float slope_at(float probability, float log_sum) const {
    constexpr float ln_2 = 0.693147180559945309F;
    if (probability <= 0) return 0;
    const float share = (logf(probability) + log_sum * ln_2) / softcap;
    return 1 - share * share;
  }
  /// The derivative of `capped`, where `product` is capped.
  TANDEM_DEVICE float slope(float product) const {
    const float share = softcap > 0 ? product * scale / softcap : 0.0F;
    return 1 - share * share;
  }

  /// Of [first_query, end_query) and [first_key, end_key), neither empty.
  TANDEM_DEVICE Visibility visibility(int /*b*/, int first_query, int end_query, int first_key, int end_key) const {
    if (!mask.causal) return Visibility::all;
    return visibility_between(query_positions.smallest(first_query, end_query), query_positions.largest(first_query, end_query),
                              key_positions.smallest(first_key, end_key), key_positions.largest(first_key, end_key));
  }

  TANDEM_DEVICE int queries_per_key_head() const { return heads / kv_heads; }

  // One (micro-batch element, head) of a tensor, from its row `first` on.
  template <typename Element>
  TANDEM_DEVICE GlobalRows<Element> query_rows(Element* q, int b, int head, int first) const {
    return rows_of_head(q, b, head, heads, head_dim, first, queries);
  }
  template <typename Element>
  TANDEM_DEVICE GlobalRows<Element> output_rows(Element* out, int b, int head, int first) const {
    return rows_of_head(out, b, head, heads, value_dim, first, queries);
  }
  template <typename Element>
  TANDEM_DEVICE GlobalRows<Element> key_rows(Element* k, int b, int kv_head, int first) const {
    return rows_of_head(k, b, kv_head, kv_heads, head_dim, first, keys);
  }
  template <typename Element>
  TANDEM_DEVICE GlobalRows<Element> value_rows(Element* v, int b, int kv_head, int first) const {
    return rows_of_head(v, b, kv_head, kv_heads, value_dim, first, keys);
  }
  /// Of a number per query, as lse lies: [b,H,s].
  TANDEM_DEVICE std::int64_t statistics_of(int b, int head) const { return (std::int64_t{b} * heads + head) * queries; }

 protected:
  /// Of queries between two positions and keys between two, where the mask is causal.
  TANDEM_DEVICE Visibility visibility_between(int first, int last, int smallest, int largest) const {
    if (smallest > last || largest < mask.first_seen(first)) return Visibility::none;
    return largest <= first && smallest >= mask.first_seen(last) ? Visibility::all : Visibility::some;
  }

 private:
  template <typename Element>
  TANDEM_DEVICE GlobalRows<Element> rows_of_head(Element* tensor, int b, int head, int of_heads, int width, int first,
                                                 int count) const {
    const std::int64_t stride = std::int64_t{micro_batch} * of_heads * width;
    return {tensor + first * stride + (std::int64_t{b} * of_heads + head) * width, stride, width, count - first};
  }
};

/// The same of sequences that are packed of documents. Kernels that need every register take one or the other.
struct PackedAttentionShape : AttentionShape {
  PlaceTable query_places = {}, key_places = {};

  static constexpr bool packed = true;

  TANDEM_DEVICE bool sees(int b, int query, int key) const {
    const DocumentPlace q = query_places.at(b, query), k = key_places.at(b, key);
    return q.document == k.document && mask.sees(q.token, k.token);
  }

  /// As AttentionShape's; both ranges begin with a span of places.
  TANDEM_DEVICE Visibility visibility(int b, int first_query, int end_query, int first_key, int end_key) const {
    const PlaceSpan q = query_places.span(b, first_query, end_query), k = key_places.span(b, first_key, end_key);
    if (q.last_document < k.first_document || k.last_document < q.first_document) return Visibility::none;
    const bool one = q.first_document == q.last_document && k.first_document == k.last_document;
    if (!one) return Visibility::some;
    return mask.causal ? visibility_between(q.first_token, q.last_token, k.first_token, k.last_token) : Visibility::all;
  }
};

/// Calls `visit` with what kernels are to take of a shape.
template <typename Visit>
void with_packing(const PackedAttentionShape& shape, Visit visit) {
  if (shape.query_places.places != nullptr) return visit(shape);
  visit(static_cast<const AttentionShape&>(shape));
}

/// Caps a warp's products.
template <int m_tiles, int n_tiles>
TANDEM_DEVICE void cap_scores(const AttentionShape& shape, float (&scores)[m_tiles][n_tiles][4]) {
#pragma unroll
  for (int m = 0; m < m_tiles; ++m)
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[m][n][i] = shape.capped_fast(scores[m][n][i]);
}

inline AttentionShape shape_of(const AttentionSizes& sizes, const AttentionAttributes& attributes) {
  const auto number = [](std::int64_t size) { return static_cast<int>(size); };
  const auto runs = [](const Positions& p) { return PositionRuns{{p.start[0], p.start[1]}, p.length[0]}; };
  return {number(sizes.queries),  number(sizes.keys),     number(sizes.micro_batch), number(sizes.heads),
          number(sizes.kv_heads), number(sizes.head_dim), number(sizes.value_dim),   attributes.scale,
          attributes.softcap,     mask_of(attributes),    runs(attributes.queries),  runs(attributes.keys)};
}

/// With the tables of documents, for which it takes `document_scratch`; null without documents.
inline PackedAttentionShape shape_of(const char* name, const Queue& queue, Scratch& scratch, const AttentionSizes& sizes,
                                     const AttentionAttributes& attributes) {
  return {shape_of(sizes, attributes),
          put_places(name, queue, scratch, attributes.documents, attributes.queries, sizes.micro_batch),
          put_places(name, queue, scratch, attributes.documents, attributes.keys, sizes.micro_batch)};
}
inline std::size_t document_scratch(const Shape& q, const Shape& k, const AttentionAttributes& attributes) {
  return place_table_scratch(attributes.documents, q[0], q[1]) + place_table_scratch(attributes.documents, k[0], k[1]);
}

/// The widths that tiles have for heads of so many elements; what is narrower is filled up with zeros.
template <int head_width_, int value_width_>
struct TileWidths {
  static constexpr int head_width = head_width_, value_width = value_width_;
};

inline constexpr int widest_head = 256;

template <typename Visit>
void with_tile_widths(const AttentionShape& shape, Visit visit) {
  const auto fit = [&](int head_width, int value_width) {
    return shape.head_dim <= head_width && shape.value_dim <= value_width;
  };
  if (fit(64, 64)) return visit(TileWidths<64, 64>{});
  if (fit(128, 128)) return visit(TileWidths<128, 128>{});
  if (fit(192, 128)) return visit(TileWidths<192, 128>{});  // latent attention
  visit(TileWidths<256, 256>{});
}

/// What the tensor cores' kernels take: 2-byte elements in rows of whole 16-byte chunks. Others go the slow and exact way. Throws
/// std::logic_error for heads too wide for either.
inline bool fits_tensor_cores(const AttentionShape& shape, std::initializer_list<DeviceTensor> tensors) {
  if (shape.head_dim > widest_head || shape.value_dim > widest_head)
    throw std::logic_error("attention takes heads of at most " + std::to_string(widest_head) + " elements");
  constexpr int chunk = 8;
  return tensors.begin()->dtype != DType::f32 && shape.head_dim % chunk == 0 && shape.value_dim % chunk == 0 &&
         are_aligned(tensors, chunk);
}

inline constexpr float log2_of_e = 1.44269504088896341F;

}  // namespace tandem
