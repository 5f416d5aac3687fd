#pragma once

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/ops/documents.h"

namespace tandem {

// Documents on a GPU: tables that kernels write into a queue's scratch from where the documents begin, which arrives in the
// parameters of launches, as a captured stream reads no host memory later.

/// Of places_per_span places one after the other: which documents they are of, and which of their tokens.
struct PlaceSpan {
  std::int32_t first_document, last_document, first_token, last_token;

  TANDEM_DEVICE void add(const PlaceSpan& other) {
    first_document = smaller(first_document, other.first_document);
    last_document = larger(last_document, other.last_document);
    first_token = smaller(first_token, other.first_token);
    last_token = larger(last_token, other.last_token);
  }
};
inline constexpr int places_per_span = 16;

/// What `count` positions of each sequence hold, as places_of says. Null without documents.
struct PlaceTable {
  const DocumentPlace* places = nullptr;  ///< [sequences][count]
  const PlaceSpan* spans = nullptr;       ///< [sequences][count / places_per_span, rounded up]
  int count = 0;

  TANDEM_DEVICE const DocumentPlace& at(int sequence, int i) const { return places[std::int64_t{sequence} * count + i]; }
  /// Of [first, end), which is not empty and begins with a span.
  TANDEM_DEVICE PlaceSpan span(int sequence, int first, int end) const {
    const std::int64_t of_sequence = std::int64_t{sequence} * ((count + places_per_span - 1) / places_per_span);
    PlaceSpan result = spans[of_sequence + first / places_per_span];
    for (int i = first / places_per_span + 1; i * places_per_span < end; ++i) result.add(spans[of_sequence + i]);
    return result;
  }
};

/// Takes `place_table_scratch` of the scratch.
PlaceTable put_places(const char* name, const Queue& queue, Scratch& scratch, const Documents& documents,
                      const Positions& positions, std::int64_t sequences);
std::size_t place_table_scratch(const Documents& documents, std::int64_t positions, std::int64_t sequences);

/// The same of the order of tokens, as ordered_tokens says.
TokenOrder put_order(const char* name, const Queue& queue, Scratch& scratch, const Documents& documents, std::int64_t length,
                     std::int64_t sequences);
std::size_t token_order_scratch(const Documents& documents, std::int64_t length, std::int64_t sequences);

}  // namespace tandem
