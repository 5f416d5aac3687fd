#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/ops/adafactor.h"
#include "runtime/ops/clip.h"

// A launch takes up to `most_pieces` pieces of a bucket, a row of its grid each, in a table among its parameters: as much as 4
// KiB of these hold. Each moves the bytes of its cost.
namespace tandem {
namespace {

constexpr int most_pieces = 32;
constexpr int threads = 256;
constexpr int columns_of_block = 32, rows_of_block = 8;
constexpr int most_blocks = 256;  // of a piece
constexpr int most_blocks_of_walk = 1024, elements_of_walk = 4096, vector_of_walk = 4;

struct Piece {
  std::int64_t begin, end, at;  ///< AdafactorPart
  std::int64_t rows, columns;
  std::int64_t row_at, column_at;                ///< of its factors
  float row_factor, column_factor, norm_factor;  ///< what sums are multiplied by
  float elements;                                ///< of the tensor
  bool mean_of_columns;
  bool aligned;                  ///< vectors of its elements are, and each is of one row
  unsigned first_block, blocks;  ///< of a walk over its elements, by as many as these are worth
};

struct Table {
  int first, count;  ///< pieces of the bucket
  Piece pieces[most_pieces];

  TANDEM_DEVICE int piece_of_block() const {
    int piece = 0;
    while (piece + 1 < count && blockIdx.x >= pieces[piece + 1].first_block) ++piece;
    return piece;
  }
  unsigned blocks() const { return pieces[count - 1].first_block + pieces[count - 1].blocks; }
  /// Returns how many blocks of so many rows, or columns, the largest piece takes: each piece gets as many.
  unsigned blocks_for(std::int64_t Piece::*extent, std::int64_t of_block) const {
    std::int64_t most = 1;
    for (int i = 0; i < count; ++i) most = std::max(most, pieces[i].*extent);
    return static_cast<unsigned>(std::min<std::int64_t>(divide_up(most, of_block), most_blocks));
  }
};

template <typename Launch>
void for_each_table(const AdafactorAttributes& attributes, const AdafactorLayout& layout, std::int64_t slice, bool of_means,
                    const Launch& launch_table) {
  const auto pieces = static_cast<int>(attributes.pieces.size());
  for (int first = 0; first < pieces; first += most_pieces) {
    const int count = std::min(most_pieces, pieces - first);
    Table table{.first = first, .count = count, .pieces = {}};
    std::int64_t blocks = 0;
    for (int i = 0; i < count; ++i) {
      const AdafactorPiece& piece = attributes.pieces[static_cast<std::size_t>(first + i)];
      const AdafactorLayout::Place& place = layout.places[static_cast<std::size_t>(first + i)];
      const AdafactorPart part = part_in_slice(attributes, piece, slice);
      const bool by_rows = piece.rows < piece.tensor_rows, by_columns = piece.columns < piece.tensor_columns;
      const auto copies = static_cast<float>(piece.copies);
      table.pieces[i] = {
          .begin = part.begin,
          .end = part.end,
          .at = part.at,
          .rows = piece.rows,
          .columns = piece.columns,
          .row_at = place.rows,
          .column_at = place.columns,
          .row_factor = of_means     ? 1 / static_cast<float>(piece.tensor_columns)
                        : by_columns ? 1 / copies
                                     : 1.0F,
          .column_factor = of_means  ? 1 / static_cast<float>(piece.tensor_rows)
                           : by_rows ? 1 / copies
                                     : 1.0F,
          .norm_factor = 1 / copies,
          .elements = static_cast<float>(piece.tensor_rows * piece.tensor_columns),
          .mean_of_columns = by_rows,
          .aligned = part.begin % vector_of_walk == 0 && part.at % vector_of_walk == 0 &&
                     (!attributes.factored || (piece.columns % vector_of_walk == 0 && place.columns % vector_of_walk == 0)),
          .first_block = static_cast<unsigned>(blocks),
          .blocks = static_cast<unsigned>(
              std::clamp<std::int64_t>(divide_up(part.end - part.begin, elements_of_walk), 1, most_blocks_of_walk))};
      blocks += table.pieces[i].blocks;
    }
    launch_table(table, static_cast<unsigned>(count));
  }
}

template <typename Gradient>
TANDEM_DEVICE float square_at(const Gradient* grad, const Piece& piece, std::int64_t i, float clip) {
  if (i < piece.begin || i >= piece.end) return 0;
  const float g = clip * to_float(grad[piece.at + i - piece.begin]);
  return g * g;
}

/// A block takes a row at a time.
template <typename Gradient>
__global__ void adafactor_rows_kernel(const Gradient* grad, const float* norm_square, float* sums, Table table, float clip_norm) {
  const Piece& piece = table.pieces[blockIdx.y];
  const float clip = clip_factor(*norm_square, clip_norm);
  for (std::int64_t row = blockIdx.x; row < piece.rows; row += gridDim.x) {
    float sum = 0;
    for (std::int64_t column = threadIdx.x; column < piece.columns; column += threads)
      sum += square_at(grad, piece, row * piece.columns + column, clip);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[piece.row_at + row] = piece.row_factor * sum;
  }
}

/// A block takes neighbouring columns, so that what a row of threads reads lies together.
template <typename Gradient>
__global__ void adafactor_columns_kernel(const Gradient* grad, const float* norm_square, float* sums, Table table,
                                         float clip_norm) {
  TANDEM_SHARED(float, of_threads, columns_of_block* rows_of_block);
  const Piece& piece = table.pieces[blockIdx.y];
  const float clip = clip_factor(*norm_square, clip_norm);
  const std::int64_t stride = std::int64_t{gridDim.x} * columns_of_block;
  for (std::int64_t first = std::int64_t{blockIdx.x} * columns_of_block; first < piece.columns; first += stride) {
    const std::int64_t column = first + threadIdx.x;
    float sum = 0;
    if (column < piece.columns)
      for (std::int64_t row = threadIdx.y; row < piece.rows; row += rows_of_block)
        sum += square_at(grad, piece, row * piece.columns + column, clip);
    of_threads[threadIdx.y * columns_of_block + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < piece.columns) {
      for (int i = 1; i < rows_of_block; ++i) sum += of_threads[i * columns_of_block + static_cast<int>(threadIdx.x)];
      sums[piece.column_at + column] = piece.column_factor * sum;
    }
    __syncthreads();
  }
}

/// A block takes a piece.
__global__ void adafactor_factors_kernel(const float* sums, float* factors, float* means, Table table, float weight) {
  const Piece& piece = table.pieces[blockIdx.x];
  const auto move = [&](std::int64_t at, std::int64_t count, float factor) {
    float sum = 0;
    for (std::int64_t i = at + threadIdx.x; i < at + count; i += threads) {
      factors[i] += weight * (factor * sums[i] - factors[i]);
      sum += factors[i];
    }
    return block_sum(sum) / static_cast<float>(count);
  };
  const float of_rows = move(piece.row_at, piece.rows, piece.row_factor);
  const float of_columns = move(piece.column_at, piece.columns, piece.column_factor);
  if (threadIdx.x == 0) means[table.first + static_cast<int>(blockIdx.x)] = piece.mean_of_columns ? of_columns : of_rows;
}

/// The second-order state of a piece.
struct StateOfPiece {
  const float *rows = nullptr, *columns;  ///< no rows: variances, as they lie in the slice
  float inverse_mean = 1;

  TANDEM_DEVICE StateOfPiece(const float* state, const float* means, const Table& table, int of) : columns(state) {
    if (means == nullptr) return;
    rows = state + table.pieces[of].row_at;
    columns = state + table.pieces[of].column_at;
    inverse_mean = adafactor_estimate(1.0F, 1.0F, means[table.first + of]);
  }
  template <int n>
  TANDEM_DEVICE void estimates(std::int64_t at, std::int64_t row, std::int64_t column, float (&values)[n]) const {
    if (rows == nullptr) return load(columns + at, values);
    const float of_row = rows[row] * inverse_mean;
    load(columns + column, values);
#pragma unroll
    for (int j = 0; j < n; ++j) values[j] *= of_row;
  }
};

/// Calls visit(Count<n>{}, at, row, column) for every `step`-th of a piece's elements from `i` on, n of them at once: where they
/// are in the slice and in the piece.
template <int n>
struct Count {};
template <int n, typename Visit>
TANDEM_DEVICE void walk_by(const Piece& piece, std::int64_t i, std::int64_t end, std::int64_t step, Visit visit) {
  if (i >= end) return;
  const std::int64_t columns = piece.columns, before = piece.at - piece.begin;
  const std::int64_t rows_of_step = step / columns, columns_of_step = step - rows_of_step * columns;
  std::int64_t row = i / columns, column = i - row * columns;
#pragma unroll 2
  for (; i < end; i += step) {
    visit(Count<n>{}, before + i, row, column);
    row += rows_of_step;
    column += columns_of_step;
    const bool carries = column >= columns;  // no division, which would take longer than the element
    row += carries ? 1 : 0;
    column -= carries ? columns : 0;
  }
}

/// Walks over the block's elements of the piece; `aligned`: the tensors begin so.
template <typename Visit>
TANDEM_DEVICE void walk(const Piece& piece, bool aligned, Visit visit) {
  const std::int64_t thread = std::int64_t{blockIdx.x - piece.first_block} * threads + threadIdx.x;
  const std::int64_t all = std::int64_t{piece.blocks} * threads;
  if (!aligned || !piece.aligned) return walk_by<1>(piece, piece.begin + thread, piece.end, all, visit);
  const std::int64_t whole = piece.begin + (piece.end - piece.begin) / vector_of_walk * vector_of_walk;
  walk_by<vector_of_walk>(piece, piece.begin + thread * vector_of_walk, whole, all * vector_of_walk, visit);
  walk_by<1>(piece, whole + thread, piece.end, all, visit);
}

/// adafactor_direction's square, within 1e-6.
TANDEM_DEVICE float square_of_direction(float gradient, float estimate) {
  constexpr float least = adafactor_epsilon * adafactor_epsilon;
  return divide_fast(gradient * gradient, larger(estimate, least));
}

template <typename Gradient>
struct VarianceStep {
  static constexpr int vector = 4;
  const Gradient* grad;
  const float* norm_square;
  float* variance;
  float weight, clip_norm;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float g[n], v[n];
    load(grad + i, g);
    load(variance + i, v);
    const float clip = clip_factor(*norm_square, clip_norm);
    for (int j = 0; j < n; ++j) {
      g[j] *= clip;
      v[j] += weight * (g[j] * g[j] - v[j]);
    }
    store(variance + i, v);
  }
};

/// Partial sums [2][blocks].
template <typename Gradient>
__global__ void __launch_bounds__(threads)
    adafactor_partial_norms_kernel(const Gradient* grad, const float* norm_square, const float* state, const float* means,
                                   const float* master, float* partial, Table table, float clip_norm, bool aligned) {
  const int of = table.piece_of_block();
  const Piece& piece = table.pieces[of];
  const float clip = clip_factor(*norm_square, clip_norm);
  const StateOfPiece state_of_piece(state, means, table, of);
  float sums[2] = {};
  walk(piece, aligned, [&]<int n>(Count<n>, std::int64_t at, std::int64_t row, std::int64_t column) {
    float g[n], w[n], estimates[n];
    load(master + at, w);
    load(grad + at, g);
    state_of_piece.estimates(at, row, column, estimates);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      sums[0] += square_of_direction(clip * g[j], estimates[j]);
      sums[1] += w[j] * w[j];
    }
  });
  block_sums(sums);
  if (threadIdx.x != 0) return;
  for (int which = 0; which < 2; ++which) partial[which * gridDim.x + blockIdx.x] = piece.norm_factor * sums[which];
}

/// A block takes one of a piece's two sums.
__global__ void adafactor_norms_kernel(const float* partial, float* squares, Table table) {
  const int of = static_cast<int>(blockIdx.x) / 2, which = static_cast<int>(blockIdx.x) % 2;
  const Piece &piece = table.pieces[of], &last = table.pieces[table.count - 1];
  const float* const first = partial + which * (last.first_block + last.blocks) + piece.first_block;
  float sum = 0;
  for (unsigned block = threadIdx.x; block < piece.blocks; block += threads) sum += first[block];
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[2 * table.first + static_cast<int>(blockIdx.x)] = sum;
}

template <typename Gradient, typename Parameter>
__global__ void __launch_bounds__(threads)
    adafactor_update_kernel(const Gradient* grad, const float* norm_square, const float* state, const float* means,
                            const float* squares, Parameter* param, float* master, Table table, AdafactorRates rates,
                            bool aligned) {
  const int of = table.piece_of_block();
  const Piece& piece = table.pieces[of];
  const float clip = clip_factor(*norm_square, rates.clip_norm);
  const float rate = adafactor_rate(rates, squares + 2 * (table.first + of), piece.elements);
  const StateOfPiece state_of_piece(state, means, table, of);
  walk(piece, aligned, [&]<int n>(Count<n>, std::int64_t at, std::int64_t row, std::int64_t column) {
    float g[n], w[n], estimates[n];
    load(master + at, w);
    load(grad + at, g);
    state_of_piece.estimates(at, row, column, estimates);
#pragma unroll
    for (int j = 0; j < n; ++j) w[j] -= rates.decay * w[j] + rate * adafactor_direction(clip * g[j], estimates[j]);
    store(master + at, w);
    store(param + at, w);
  });
}

/// Whether these tensors begin where vectors of a walk can be loaded and stored.
bool are_walked_by_vectors(std::initializer_list<DeviceTensor> tensors) { return are_aligned(tensors, vector_of_walk); }

const float* means_of(const AdafactorAttributes& attributes, const AdafactorLayout& layout, const DeviceTensor& state) {
  return attributes.factored ? state.as<const float>() + layout.sums : nullptr;
}

}  // namespace

void adafactor_sums_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, sums] = checked<3>(OpKind::adafactor_sums, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, sums), "adafactor's sums are fp32");
  const AdafactorLayout layout(attributes);
  const std::int64_t slice = grad.shape.elements();
  with_type(grad.dtype, [&, grad = grad, norm_square = norm_square, sums = sums]<typename Gradient>(Type<Gradient>) {
    for_each_table(attributes, layout, slice, false, [&](const Table& table, unsigned pieces) {
      const auto* gradients = grad.template as<const Gradient>();
      const auto* norm = norm_square.template as<const float>();
      launch("adafactor_sums", queue, {dim3(table.blocks_for(&Piece::rows, 1), pieces), dim3(threads)},
             adafactor_rows_kernel<Gradient>, gradients, norm, sums.template as<float>(), table, attributes.clip_norm);
      launch("adafactor_sums", queue,
             {dim3(table.blocks_for(&Piece::columns, columns_of_block), pieces), dim3(columns_of_block, rows_of_block)},
             adafactor_columns_kernel<Gradient>, gradients, norm, sums.template as<float>(), table, attributes.clip_norm);
    });
  });
}

void adafactor_factors_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [sums, factors] = checked<2>(OpKind::adafactor_factors, operands, any);
  expect_types(sums.dtype == DType::f32 && of_one_type(sums, factors), "adafactor's factors are fp32");
  const AdafactorLayout layout(attributes);
  for_each_table(attributes, layout, 0, true, [&, sums = sums, factors = factors](const Table& table, unsigned pieces) {
    launch("adafactor_factors", queue, {dim3(pieces), dim3(threads)}, adafactor_factors_kernel, sums.as<const float>(),
           factors.as<float>(), factors.as<float>() + layout.sums, table, adafactor_weight(attributes));
  });
}

void adafactor_variance_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, variance] = checked<3>(OpKind::adafactor_variance, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, variance), "adafactor's variances are fp32");
  with_type(grad.dtype, [&, grad = grad, norm_square = norm_square, variance = variance]<typename Gradient>(Type<Gradient>) {
    const VarianceStep<Gradient> body{.grad = grad.template as<const Gradient>(),
                                      .norm_square = norm_square.template as<const float>(),
                                      .variance = variance.template as<float>(),
                                      .weight = adafactor_weight(attributes),
                                      .clip_norm = attributes.clip_norm};
    launch_elementwise("adafactor_variance", queue, grad.shape.elements(), are_aligned({grad, variance}, body.vector), body);
  });
}

std::size_t adafactor_norms_scratch(std::span<const OperandType>, const OpAttributes&) {
  return scratch_piece(std::size_t{most_pieces} * 2 * most_blocks_of_walk * sizeof(float));
}

void adafactor_norms_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, state, master, squares] = checked<5>(OpKind::adafactor_norms, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, state, master, squares),
               "adafactor's states, weights and sums are fp32");
  const AdafactorLayout layout(attributes);
  const float *const walked = state.as<const float>(), *const means = means_of(attributes, layout, state);
  const bool aligned = are_walked_by_vectors({grad, master, state});
  auto* const partial =
      static_cast<float*>(Scratch(queue).take(std::size_t{most_pieces} * 2 * most_blocks_of_walk * sizeof(float)));
  with_type(grad.dtype,
            [&, grad = grad, norm_square = norm_square, master = master, squares = squares]<typename Gradient>(Type<Gradient>) {
              for_each_table(attributes, layout, grad.shape.elements(), false, [&](const Table& table, unsigned pieces) {
                launch("adafactor_norms", queue, {dim3(table.blocks()), dim3(threads)}, adafactor_partial_norms_kernel<Gradient>,
                       grad.template as<const Gradient>(), norm_square.template as<const float>(), walked, means,
                       master.template as<const float>(), partial, table, attributes.clip_norm, aligned);
                launch("adafactor_norms", queue, {dim3(2 * pieces), dim3(threads)}, adafactor_norms_kernel, partial,
                       squares.template as<float>(), table);
              });
            });
}

void adafactor_update_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, state, squares, param, master] = checked<6>(OpKind::adafactor_update, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, state, master, squares),
               "adafactor's states, weights and sums are fp32");
  const AdafactorLayout layout(attributes);
  const float *const walked = state.as<const float>(), *const means = means_of(attributes, layout, state);
  const bool aligned = are_walked_by_vectors({grad, param, master, state});
  const AdafactorRates rates(attributes);
  with_type(grad.dtype, [&, grad = grad, norm_square = norm_square, squares = squares, param = param,
                         master = master]<typename Gradient>(Type<Gradient>) {
    with_type(param.dtype, [&]<typename Parameter>(Type<Parameter>) {
      for_each_table(attributes, layout, grad.shape.elements(), false, [&](const Table& table, unsigned) {
        launch("adafactor_update", queue, {dim3(table.blocks()), dim3(threads)}, adafactor_update_kernel<Gradient, Parameter>,
               grad.template as<const Gradient>(), norm_square.template as<const float>(), walked, means,
               squares.template as<const float>(), param.template as<Parameter>(), master.template as<float>(), table, rates,
               aligned);
      });
    });
  });
}

}  // namespace tandem
