#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// top_k_select is a radix select: the bits of a magnitude, read as an integer, have the order of the magnitudes. Three passes
// count them by 11, 10 and 10 bits, each among those that agree with the k-th largest in the bits before, until all of that are
// known. Then each block counts in its stretch those above it and those equal to it, and in a last pass writes what is selected,
// in the order of the indices. sparse_sum finds where in the selections each tile of the result begins, then adds a tile up in
// shared memory, one selection after the other. Both move the bytes of their cost, and sparse_sum reads the indices twice.
namespace tandem {
namespace {

constexpr int threads_of_select = 256, warps_of_select = threads_of_select / lanes_of_warp;
constexpr int rounds = 3, most_bins = 2048;
constexpr int bins_of_thread = most_bins / threads_of_select;
constexpr std::int64_t most_stretches = 1024;

TANDEM_DEVICE int shift_of(int round) { return round == 0 ? 20 : round == 1 ? 10 : 0; }
TANDEM_DEVICE unsigned mask_of(int round) { return round == 0 ? 2047U : 1023U; }

TANDEM_DEVICE unsigned magnitude_bits(float value) { return static_cast<unsigned>(__float_as_int(value)) & 0x7FFFFFFFU; }

/// What the passes find out, in scratch.
struct Search {
  unsigned known;  ///< bits of the k-th largest magnitude, as far as known, the others 0
  int wanted;      ///< how many are to be selected among those that agree with it in the known bits
};
struct Stretch {
  int above, equal;
};
struct SelectScratch {
  Search* search;
  int* bins;  ///< [rounds][most_bins]
  Stretch* stretches;

  explicit SelectScratch(void* scratch)
      : search(static_cast<Search*>(scratch)),
        bins(reinterpret_cast<int*>(search + 1)),
        stretches(reinterpret_cast<Stretch*>(bins + rounds * most_bins)) {}
  static constexpr std::size_t bytes = sizeof(Search) + sizeof(int) * rounds * most_bins + sizeof(Stretch) * most_stretches;
};

struct BeginSearch {
  static constexpr int vector = 1;
  Search* search;
  int* bins;
  int selected;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    bins[i] = 0;
    if (i == 0) *search = {0, selected};
  }
};

/// Counts those that agree in the known bits by the next ones. The first round adds x to the residual.
template <typename Element>
__global__ void count_bins_kernel(const Element* x, Element* residual, std::int64_t elements, int round, const Search* search,
                                  int* bins) {
  TANDEM_SHARED(int, counts, most_bins);
  for (int bin = static_cast<int>(threadIdx.x); bin < most_bins; bin += threads_of_select) counts[bin] = 0;
  __syncthreads();
  const unsigned known = search->known;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    if (round == 0) residual[i] = from_float<Element>(to_float(residual[i]) + to_float(x[i]));
    const unsigned bits = magnitude_bits(to_float(residual[i]));
    const bool agrees = round == 0 || bits >> shift_of(round - 1) == known >> shift_of(round - 1);
    if (agrees) atomicAdd(&counts[bits >> shift_of(round) & mask_of(round)], 1);
  }
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < most_bins; bin += threads_of_select)
    if (counts[bin] > 0) atomicAdd(&bins[round * most_bins + bin], counts[bin]);
}

/// One block: finds the bin of the k-th largest.
__global__ void find_bin_kernel(int round, Search* search, const int* bins) {
  TANDEM_SHARED(int, sums, threads_of_select);
  const int* const counts = bins + round * most_bins;
  const int thread = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int bin = 0; bin < bins_of_thread; ++bin) sum += counts[thread * bins_of_thread + bin];
  sums[thread] = sum;
  __syncthreads();
  if (thread != 0) return;
  int wanted = search->wanted, group = threads_of_select - 1;
  while (group > 0 && sums[group] < wanted) wanted -= sums[group--];
  int bin = (group + 1) * bins_of_thread - 1;
  while (bin > group * bins_of_thread && counts[bin] < wanted) wanted -= counts[bin--];
  *search = {search->known | static_cast<unsigned>(bin) << shift_of(round), wanted};
}

/// The elements [begin, end) of a block.
struct OwnStretch {
  std::int64_t begin, end;

  TANDEM_DEVICE explicit OwnStretch(std::int64_t elements) {
    const std::int64_t length = (elements + gridDim.x - 1) / gridDim.x;
    begin = smaller(std::int64_t{blockIdx.x} * length, elements);
    end = smaller(begin + length, elements);
  }
};

template <typename Element>
__global__ void count_stretch_kernel(const Element* residual, std::int64_t elements, const Search* search, Stretch* stretches) {
  TANDEM_SHARED(int, counts, 2);
  if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  __syncthreads();
  const unsigned least = search->known;
  const OwnStretch own(elements);
  int above = 0, equal = 0;
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += blockDim.x) {
    const unsigned bits = magnitude_bits(to_float(residual[i]));
    above += bits > least ? 1 : 0;
    equal += bits == least ? 1 : 0;
  }
  atomicAdd(&counts[0], above);
  atomicAdd(&counts[1], equal);
  __syncthreads();
  if (threadIdx.x == 0) stretches[blockIdx.x] = {counts[0], counts[1]};
}

template <typename Element>
__global__ void write_selected_kernel(Element* residual, std::int64_t elements, const Search* search, const Stretch* stretches,
                                      Element* values, std::int32_t* indices) {
  TANDEM_SHARED(int, before, 2);
  TANDEM_SHARED(int, of_warps, 2 * warps_of_select);
  if (threadIdx.x < 2) before[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < blockIdx.x; i += blockDim.x) {
    atomicAdd(&before[0], stretches[i].above);
    atomicAdd(&before[1], stretches[i].equal);
  }
  __syncthreads();
  const auto [least, wanted] = *search;
  const OwnStretch own(elements);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  int all_above = before[0], all_equal = before[1];
  for (std::int64_t tile = own.begin; tile < own.end; tile += threads_of_select) {
    const std::int64_t i = tile + threadIdx.x;
    const Element element = i < own.end ? residual[i] : from_float<Element>(0.0F);
    const unsigned bits = magnitude_bits(to_float(element));
    const bool above = i < own.end && bits > least, equal = i < own.end && bits == least;
    const unsigned lanes_above = __ballot_sync(every_lane, above), lanes_equal = __ballot_sync(every_lane, equal);
    __syncthreads();  // the counts of the tile before may still be read
    if (lane == 0) {
      of_warps[2 * warp] = __popc(lanes_above);
      of_warps[2 * warp + 1] = __popc(lanes_equal);
    }
    __syncthreads();
    const unsigned lower_lanes = (1U << lane) - 1;
    int place_above = all_above + __popc(lanes_above & lower_lanes), place_equal = all_equal + __popc(lanes_equal & lower_lanes);
    for (int w = 0; w < warps_of_select; ++w) {
      if (w < warp) {
        place_above += of_warps[2 * w];
        place_equal += of_warps[2 * w + 1];
      }
      all_above += of_warps[2 * w];
      all_equal += of_warps[2 * w + 1];
    }
    if (above || (equal && place_equal < wanted)) {
      const int place = place_above + smaller(place_equal, wanted);
      values[place] = element;
      indices[place] = static_cast<std::int32_t>(i);
      residual[i] = from_float<Element>(0.0F);
    }
  }
}

constexpr int tile_of_sum = 4096, threads_of_sum = 128;  // few, as a tile holds few elements of a selection

/// begins [selections][tiles + 1]: of each selection where in it a tile begins. The thread of an index writes those of the tiles
/// that begin with it, or between it and the index before.
__global__ void find_tiles_kernel(const std::int32_t* indices, int selected, int tiles, int* begins) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > selected) return;
  const std::int32_t* const of_selection = indices + std::int64_t{blockIdx.y} * selected;
  const int before = i == 0 ? -1 : of_selection[i - 1] / tile_of_sum;
  const int now = i == selected ? tiles : of_selection[i] / tile_of_sum;
  for (int tile = before + 1; tile <= now; ++tile) begins[std::int64_t{blockIdx.y} * (tiles + 1) + tile] = i;
}

/// A block makes a tile. What its threads first take of some selections is under way at once; few tiles have more of them.
template <typename Element>
__global__ void __launch_bounds__(threads_of_sum)
    sparse_sum_kernel(const Element* values, const std::int32_t* indices, const int* begins, int selections, int selected,
                      Element* y, std::int64_t elements, bool aligned) {
  TANDEM_SHARED(float, sums, tile_of_sum);
  constexpr int vector = vector_of<Element>, at_once = 4;
  const int thread = static_cast<int>(threadIdx.x), tiles = static_cast<int>(gridDim.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * tile_of_sum;
  alignas(widest_access) constexpr float zeros[4] = {};
#pragma unroll
  for (int i = 4 * thread; i < tile_of_sum; i += 4 * threads_of_sum) copy_aligned<widest_access>(sums + i, zeros);
  for (int base = 0; base < selections; base += at_once) {
    int next[at_once], end[at_once], place[at_once];
    Element value[at_once];
#pragma unroll
    for (int s = 0; s < at_once; ++s) {
      if (base + s < selections) {
        const int* const bounds = begins + std::int64_t{base + s} * (tiles + 1) + blockIdx.x;
        next[s] = bounds[0] + thread;
        end[s] = bounds[1];
      } else {
        next[s] = end[s] = 0;
      }
    }
#pragma unroll
    for (int s = 0; s < at_once; ++s) {
      if (next[s] >= end[s]) continue;
      const std::int64_t at = std::int64_t{base + s} * selected + next[s];
      place[s] = static_cast<int>(indices[at] - first);
      value[s] = values[at];
    }
#pragma unroll
    for (int s = 0; s < at_once; ++s) {
      if (base + s >= selections) continue;
      __syncthreads();  // of a selection no two elements are one, but of several they may be
      if (next[s] < end[s]) sums[place[s]] += to_float(value[s]);
      const std::int64_t of_selection = std::int64_t{base + s} * selected;
#pragma unroll 1
      for (int i = next[s] + threads_of_sum; i < end[s]; i += threads_of_sum)
        sums[indices[of_selection + i] - first] += to_float(values[of_selection + i]);
    }
  }
  __syncthreads();
  if (aligned && first + tile_of_sum <= elements) {
#pragma unroll
    for (int i = vector * thread; i < tile_of_sum; i += vector * threads_of_sum) {
      float of_thread[vector];
      load(sums + i, of_thread);
      store(y + first + i, of_thread);
    }
  } else {
    for (int i = thread; i < tile_of_sum && first + i < elements; i += threads_of_sum)
      y[first + i] = from_float<Element>(sums[i]);
  }
}

}  // namespace

void top_k_select_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x, values, indices, residual] = checked<4>(OpKind::top_k_select, operands, attributes);
  expect_types(of_one_type(x, values, residual) && indices.dtype == DType::i32, "what is selected keeps its type");
  const std::int64_t elements = x.shape.elements();
  const SelectScratch scratch(queue.scratch);
  const Grid blocks{
      dim3(static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(elements, threads_of_select), 1, most_stretches))),
      dim3(threads_of_select)};
  const char* const name = "top_k_select";
  launch_elementwise(name, queue, rounds * most_bins, true,
                     BeginSearch{scratch.search, scratch.bins, static_cast<int>(values.shape.elements())});
  with_type(x.dtype, [&, x = x, values = values, indices = indices, residual = residual]<typename Element>(Type<Element>) {
    auto* const rest = residual.as<Element>();
    for (int round = 0; round < rounds; ++round) {
      launch(name, queue, blocks, count_bins_kernel<Element>, x.as<const Element>(), rest, elements, round, scratch.search,
             scratch.bins);
      launch(name, queue, {dim3(1), dim3(threads_of_select)}, find_bin_kernel, round, scratch.search, scratch.bins);
    }
    launch(name, queue, blocks, count_stretch_kernel<Element>, rest, elements, scratch.search, scratch.stretches);
    launch(name, queue, blocks, write_selected_kernel<Element>, rest, elements, scratch.search, scratch.stretches,
           values.as<Element>(), indices.as<std::int32_t>());
  });
}

std::size_t top_k_select_scratch(std::span<const OperandType>, const OpAttributes&) { return SelectScratch::bytes; }

void sparse_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [values, indices, y] = checked<3>(OpKind::sparse_sum, operands, attributes);
  expect_types(of_one_type(values, y) && indices.dtype == DType::i32, "sparse_sum keeps the type");
  const std::int64_t elements = y.shape.elements(), tiles = divide_up(elements, tile_of_sum);
  const auto selections = static_cast<int>(values.shape[0]), selected = static_cast<int>(values.shape[1]);
  auto* const begins = static_cast<int*>(queue.scratch);
  const Grid by_index{
      dim3(blocks_along_x(divide_up(std::int64_t{selected} + 1, threads_of_select)), static_cast<unsigned>(selections)),
      dim3(threads_of_select)};
  launch("sparse_sum", queue, by_index, find_tiles_kernel, indices.as<const std::int32_t>(), selected, static_cast<int>(tiles),
         begins);
  with_type(y.dtype, [&, values = values, indices = indices, y = y]<typename Element>(Type<Element>) {
    launch("sparse_sum", queue, {dim3(blocks_along_x(tiles)), dim3(threads_of_sum)}, sparse_sum_kernel<Element>,
           values.as<const Element>(), indices.as<const std::int32_t>(), begins, selections, selected, y.as<Element>(), elements,
           is_aligned(y, vector_of<Element>));
  });
}

std::size_t sparse_sum_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  const std::int64_t tiles = divide_up(operands[2].shape.elements(), tile_of_sum);
  return static_cast<std::size_t>(operands[0].shape[0] * (tiles + 1)) * sizeof(int);
}

}  // namespace tandem
