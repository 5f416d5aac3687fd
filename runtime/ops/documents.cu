#include <algorithm>

#include "runtime/cuda/module/elementwise.h"
#include "runtime/ops/documents_device.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// As many as the parameters of a launch hold: 4 KB.
struct SomeStarts {
  static constexpr int most = 448;
  std::int64_t values[most];
};

__global__ void keep_starts_kernel(SomeStarts starts, int count, std::int64_t* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] = starts.values[i];
}

/// Documents as kernels read them.
struct DocumentStarts {
  const std::int64_t* starts;
  int count;
  std::int64_t sequence, parts, sequences;

  TANDEM_DEVICE std::int64_t end(int document) const {
    return document + 1 < count ? starts[document + 1] : sequences * sequence;
  }
  /// Which one has the token, of all sequences' one after the other.
  TANDEM_DEVICE int document_of(std::int64_t token) const {
    int first = 0, last = count - 1;
    while (first < last) {  // the last that begins there or before
      const int middle = (first + last + 1) / 2;
      if (starts[middle] <= token)
        first = middle;
      else
        last = middle - 1;
    }
    return first;
  }
  TANDEM_DEVICE DocumentPlace place(std::int64_t of_sequence, std::int64_t position) const {
    const std::int64_t run = sequence / parts, begin = of_sequence * sequence;
    const int document = document_of(begin + position % run * parts);
    const std::int64_t length = (end(document) - starts[document]) / parts, offset = (starts[document] - begin) / parts;
    return {document, static_cast<std::int32_t>(position / run * length + position % run - offset)};
  }
  TANDEM_DEVICE OrderedToken ordered(std::int64_t of_sequence, std::int64_t token) const {
    const std::int64_t begin = of_sequence * sequence;
    const int document = document_of(begin + token);
    const std::int64_t length = (end(document) - starts[document]) / parts, offset = (starts[document] - begin) / parts;
    const std::int64_t before = begin + token - starts[document];
    return {static_cast<std::int32_t>(before / length * (sequence / parts) + offset + before % length),
            static_cast<std::int32_t>(before)};
  }
};

struct PutPlaces {
  static constexpr int vector = 1;
  DocumentStarts documents;
  int start[2], first_length, count;  ///< of the positions
  DocumentPlace* places;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const auto index = static_cast<int>(i % count);
    const int position = index < first_length ? start[0] + index : start[1] + index - first_length;
    places[i] = documents.place(i / count, position);
  }
};

struct PutSpans {
  static constexpr int vector = 1;
  const DocumentPlace* places;
  int count, spans_of_sequence;
  PlaceSpan* spans;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t sequence = i / spans_of_sequence, first = i % spans_of_sequence * places_per_span;
    const std::int64_t end = smaller<std::int64_t>(first + places_per_span, count);
    const DocumentPlace* const of_sequence = places + sequence * count;
    const auto alone = [](const DocumentPlace& p) { return PlaceSpan{p.document, p.document, p.token, p.token}; };
    PlaceSpan span = alone(of_sequence[first]);
    for (std::int64_t j = first + 1; j < end; ++j) span.add(alone(of_sequence[j]));
    spans[i] = span;
  }
};

struct PutOrder {
  static constexpr int vector = 1;
  DocumentStarts documents;
  OrderedToken* tokens;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    tokens[i] = documents.ordered(i / documents.sequence, i % documents.sequence);
  }
};

std::size_t bytes_of_starts(const Documents& documents) { return documents.starts.size() * sizeof(std::int64_t); }
std::int64_t spans_of(std::int64_t places) { return divide_up(places, std::int64_t{places_per_span}); }

DocumentStarts put_starts(const char* name, const Queue& queue, Scratch& scratch, const Documents& documents,
                          std::int64_t sequences) {
  expect_shapes(documents.runs.empty(), "runs of sequences are of the unsharded reference, which hosts execute");
  auto* const to = static_cast<std::int64_t*>(scratch.take(bytes_of_starts(documents)));
  const std::size_t all = documents.starts.size();
  for (std::size_t first = 0; first < all; first += SomeStarts::most) {
    SomeStarts some{};
    const std::size_t count = std::min<std::size_t>(all - first, SomeStarts::most);
    std::copy_n(documents.starts.begin() + static_cast<std::ptrdiff_t>(first), count, some.values);
    launch(name, queue, {dim3(1), dim3(512)}, keep_starts_kernel, some, static_cast<int>(count), to + first);
  }
  return {to, static_cast<int>(all), documents.sequence, documents.parts, sequences};
}

}  // namespace

PlaceTable put_places(const char* name, const Queue& queue, Scratch& scratch, const Documents& documents,
                      const Positions& positions, std::int64_t sequences) {
  if (documents.starts.empty()) return {};
  const DocumentStarts starts = put_starts(name, queue, scratch, documents, sequences);
  const std::int64_t count = positions.count(), spans = spans_of(count);
  auto* const places =
      static_cast<DocumentPlace*>(scratch.take(static_cast<std::size_t>(sequences * count) * sizeof(DocumentPlace)));
  auto* const of_spans = static_cast<PlaceSpan*>(scratch.take(static_cast<std::size_t>(sequences * spans) * sizeof(PlaceSpan)));
  launch_elementwise(
      name, queue, sequences * count, false,
      PutPlaces{starts, {positions.start[0], positions.start[1]}, positions.length[0], static_cast<int>(count), places});
  launch_elementwise(name, queue, sequences * spans, false,
                     PutSpans{places, static_cast<int>(count), static_cast<int>(spans), of_spans});
  return {places, of_spans, static_cast<int>(count)};
}

std::size_t place_table_scratch(const Documents& documents, std::int64_t positions, std::int64_t sequences) {
  if (documents.starts.empty()) return 0;
  return scratch_piece(bytes_of_starts(documents)) +
         scratch_piece(static_cast<std::size_t>(sequences * positions) * sizeof(DocumentPlace)) +
         scratch_piece(static_cast<std::size_t>(sequences * spans_of(positions)) * sizeof(PlaceSpan));
}

TokenOrder put_order(const char* name, const Queue& queue, Scratch& scratch, const Documents& documents, std::int64_t length,
                     std::int64_t sequences) {
  if (documents.starts.empty()) return {nullptr, length};
  expect_shapes(length == documents.sequence, "documents lie in whole sequences");
  const DocumentStarts starts = put_starts(name, queue, scratch, documents, sequences);
  auto* const tokens =
      static_cast<OrderedToken*>(scratch.take(static_cast<std::size_t>(sequences * length) * sizeof(OrderedToken)));
  launch_elementwise(name, queue, sequences * length, false, PutOrder{starts, tokens});
  return {tokens, length};
}

std::size_t token_order_scratch(const Documents& documents, std::int64_t length, std::int64_t sequences) {
  if (documents.starts.empty()) return 0;
  return scratch_piece(bytes_of_starts(documents)) +
         scratch_piece(static_cast<std::size_t>(sequences * length) * sizeof(OrderedToken));
}

}  // namespace tandem
