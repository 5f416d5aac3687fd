#pragma once

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_sizes.h"
#include "runtime/ops/row_team_device.h"

// What the kernels of hyper-connections share: a thread takes vectors of all streams at one place. Kernels are compiled for up to
// 4 and up to 8 streams, which so stay in registers.
namespace tandem {

template <int most>
struct Streams {};
template <typename Visit>
void with_streams(const HyperSizes& n, Visit visit) {
  if (n.streams <= 4) return visit(Streams<4>{});
  visit(Streams<HyperSizes::most_streams>{});
}

/// Loads the vectors of all streams at one place; `first` is that of the first stream.
template <int most, int count, typename Element>
TANDEM_DEVICE void load_streams(const HyperSizes& n, const Element* first, float (&values)[most][count]) {
#pragma unroll
  for (int j = 0; j < most; ++j) {
    if (j < n.streams) {
      load(first + j * n.width, values[j]);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) values[j][i] = 0;
    }
  }
}

inline const HyperAttributes& hyper_of(const OpAttributes& any) { return std::get<HyperAttributes>(any); }

/// Like with_row_teams, of teams that hold no rows: a thread has all streams at a place under way at once, which is enough.
template <typename Element, typename Visit>
void with_looping_teams(std::int64_t width, bool aligned, Visit visit) {
  constexpr int vector = vector_of<Element>, vectors_of_thread = 2;
  if (aligned) return visit(RowShape<vector, 0>{}, RowTeams(width / vector, vectors_of_thread));
  visit(RowShape<1, 0>{}, RowTeams(width, vectors_of_thread));
}

/// Whether the streams of a row are made of whole vectors, all operands beginning so.
template <typename Element>
bool have_vectors(const HyperSizes& n, std::initializer_list<DeviceTensor> tensors) {
  return n.width % vector_of<Element> == 0 && are_aligned(tensors, vector_of<Element>);
}

}  // namespace tandem
