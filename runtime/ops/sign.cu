#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// sign_compress reads everything twice: once for the means, once for the signs. All move the bytes of their cost. What
// packs signs takes the elements of a byte, by vectors where these are aligned and all there.
namespace tandem {
namespace {

constexpr int signs_of_byte = 8, threads_of_mean = 256;
constexpr std::int64_t most_sums_of_part = 2048, elements_of_sum = 16384;

/// Partial sums of a part's magnitudes, of stretches of equal length.
int sums_of_part(std::int64_t part) { return static_cast<int>(std::min(most_sums_of_part, divide_up(part, elements_of_sum))); }

/// Elements that are there, of parts on end.
struct SignedParts {
  std::int64_t part, valid;

  TANDEM_DEVICE std::int64_t count(std::int64_t which) const {
    const std::int64_t left = valid - which * part;
    return left < 0 ? 0 : smaller(left, part);
  }
};

/// Block (x, y): partial sum x of part y. `vector` is 1, or divides a part.
template <int vector, typename Element>
__global__ void __launch_bounds__(threads_of_mean)
    magnitudes_kernel(const Element* x, const Element* residual, SignedParts parts, float* sums) {
  const std::int64_t first = std::int64_t{blockIdx.y} * parts.part, count = parts.count(blockIdx.y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x * vector;
  float lanes[vector] = {}, rest = 0;  // independent sums, as each element of a long sum costs exactness
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * vector;
#pragma unroll 2
  for (; i + vector <= count; i += stride) {
    float values[vector], left[vector];
    load(x + first + i, values);
    load(residual + first + i, left);
#pragma unroll
    for (int j = 0; j < vector; ++j) lanes[j] += fabsf(values[j] + left[j]);
  }
  for (; i < count; ++i) rest += fabsf(to_float(x[first + i]) + to_float(residual[first + i]));
#pragma unroll
  for (int j = 0; j < vector; ++j) rest += lanes[j];
  rest = block_sum(rest);
  if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = rest;
}

/// A block makes the mean of a part.
__global__ void mean_magnitudes_kernel(const float* sums, float* scales, int sums_of_part, SignedParts parts) {
  const std::int64_t part = blockIdx.x;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < sums_of_part; i += threads_of_mean) sum += sums[part * sums_of_part + i];
  sum = block_sum(sum);
  const std::int64_t count = parts.count(part);
  if (threadIdx.x == 0) scales[part] = count > 0 ? sum / static_cast<float>(count) : 0.0F;
}

/// By byte.
template <typename Element>
struct PackSigns {
  static constexpr int vector = 1;
  const Element* x;
  const float* scales;
  std::uint8_t* signs;
  Element* residual;
  SignedParts parts;
  std::int64_t elements;
  bool aligned;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t byte) const {
    const std::int64_t first = byte * signs_of_byte;
    const float scale = scales[first / parts.part];
    float values[signs_of_byte] = {}, left[signs_of_byte] = {};
    const bool whole = aligned && first + signs_of_byte <= parts.valid && first + signs_of_byte <= elements;
    if (whole) {
      load(x + first, values);
      load(residual + first, left);
    } else {
      for (int j = 0; j < signs_of_byte; ++j) {
        if (first + j >= parts.valid) continue;
        values[j] = to_float(x[first + j]);
        left[j] = to_float(residual[first + j]);
      }
    }
    unsigned bits = 0;
#pragma unroll
    for (int j = 0; j < signs_of_byte; ++j) {
      const float value = values[j] + left[j];
      const bool positive = value >= 0;
      bits |= (positive ? 1U : 0U) << j;
      left[j] = first + j < parts.valid ? value - (positive ? scale : -scale) : 0.0F;
    }
    if (whole) {
      store(residual + first, left);
    } else {
      for (int j = 0; j < signs_of_byte && first + j < elements; ++j) residual[first + j] = from_float<Element>(left[j]);
    }
    signs[byte] = static_cast<std::uint8_t>(bits);
  }
};

constexpr int threads_of_signs = 256, vectors_of_signs = 4;  // of a thread, under way at once

/// Row y of blocks sums the next `parts` parts to the next elements of y, as many as a part has. Neighbouring threads store
/// neighbouring vectors, and those of one byte load it together.
template <int vector, typename Element>
__global__ void __launch_bounds__(threads_of_signs) add_signs_kernel(const std::uint8_t* signs, const float* scales, Element* y,
                                                                     int parts, std::int64_t bytes, std::int64_t elements) {
  static_assert(signs_of_byte % vector == 0);
  const std::int64_t first_part = std::int64_t{blockIdx.y} * parts, first_of_row = blockIdx.y * bytes * signs_of_byte;
  const std::int64_t count = smaller(bytes * signs_of_byte, elements - first_of_row);
  constexpr int step = threads_of_signs * vector;
  const std::int64_t first = std::int64_t{blockIdx.x} * step * vectors_of_signs + static_cast<int>(threadIdx.x) * vector;
  const int shift = static_cast<int>(first % signs_of_byte);  // of all its vectors, as a step is made of whole bytes
  static_assert(step % signs_of_byte == 0);
  float sums[vectors_of_signs][vector] = {};
#pragma unroll 2
  for (int part = 0; part < parts; ++part) {
    const float scale = scales[first_part + part];
    const std::uint8_t* const from = signs + (first_part + part) * bytes + first / signs_of_byte;
    unsigned bits[vectors_of_signs];
#pragma unroll
    for (int i = 0; i < vectors_of_signs; ++i) bits[i] = first + i * step < count ? from[i * (step / signs_of_byte)] : 0U;
#pragma unroll
    for (int i = 0; i < vectors_of_signs; ++i)
#pragma unroll
      for (int j = 0; j < vector; ++j) sums[i][j] += (bits[i] >> shift >> j & 1U) != 0 ? scale : -scale;
  }
  Element* const to = y + first_of_row;
#pragma unroll
  for (int i = 0; i < vectors_of_signs; ++i) {
    const std::int64_t at = first + i * step;
    if (at + vector <= count) {
      store(to + at, sums[i]);
    } else {
#pragma unroll
      for (int j = 0; j < vector; ++j)
        if (at + j < count) to[at + j] = from_float<Element>(sums[i][j]);
    }
  }
}

/// y = `rows` sums of `parts` parts each, one after the other.
void add_signs(const char* name, const Queue& queue, const DeviceTensor& signs, const DeviceTensor& scales, const DeviceTensor& y,
               std::int64_t rows, std::int64_t parts) {
  const std::int64_t bytes = signs.shape[1], elements = y.shape.elements();
  with_type(y.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = is_aligned(y, vector);
    const std::int64_t of_block = std::int64_t{threads_of_signs} * vectors_of_signs * (aligned ? vector : 1);
    launch(
        name, queue,
        {dim3(blocks_along_x(divide_up(bytes * signs_of_byte, of_block)), static_cast<unsigned>(rows)), dim3(threads_of_signs)},
        aligned ? add_signs_kernel<vector, Element> : add_signs_kernel<1, Element>, signs.as<const std::uint8_t>(),
        scales.as<const float>(), y.as<Element>(), static_cast<int>(parts), bytes, elements);
  });
}

void expect_sign_types(const DeviceTensor& signs, const DeviceTensor& scales) {
  expect_types(signs.dtype == DType::u8 && scales.dtype == DType::f32, "signs are uint8, their scales fp32");
}

}  // namespace

void sign_compress_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x, signs, scales, residual] = checked<4>(OpKind::sign_compress, operands, attributes);
  expect_sign_types(signs, scales);
  expect_types(of_one_type(x, residual), "a residual is of the type of what is compressed");
  const std::int64_t count = signs.shape[0];
  const SignedParts parts{signs.shape[1] * signs_of_byte, std::get<SignAttributes>(attributes).valid};
  const int sums = sums_of_part(parts.part);
  auto* const partial = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&, x = x, signs = signs, scales = scales, residual = residual]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const auto* const from = x.as<const Element>();
    const bool aligned = are_aligned({x, residual}, signs_of_byte);
    launch("sign_compress", queue, {dim3(static_cast<unsigned>(sums), static_cast<unsigned>(count)), dim3(threads_of_mean)},
           aligned ? magnitudes_kernel<vector, Element> : magnitudes_kernel<1, Element>, from, residual.as<const Element>(),
           parts, partial);
    launch("sign_compress", queue, {dim3(static_cast<unsigned>(count)), dim3(threads_of_mean)}, mean_magnitudes_kernel, partial,
           scales.as<float>(), sums, parts);
    launch_elementwise("sign_compress", queue, signs.shape.elements(), true,
                       PackSigns<Element>{from, scales.as<const float>(), signs.as<std::uint8_t>(), residual.as<Element>(), parts,
                                          x.shape.elements(), aligned});
  });
}

std::size_t sign_compress_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  const Shape& signs = operands[1].shape;
  return static_cast<std::size_t>(signs[0] * sums_of_part(signs[1] * signs_of_byte)) * sizeof(float);
}

void sign_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [signs, scales, y] = checked<3>(OpKind::sign_sum, operands, attributes);
  expect_sign_types(signs, scales);
  add_signs("sign_sum", queue, signs, scales, y, 1, signs.shape[0]);
}

void sign_expand_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [signs, scales, y] = checked<3>(OpKind::sign_expand, operands, attributes);
  expect_sign_types(signs, scales);
  add_signs("sign_expand", queue, signs, scales, y, signs.shape[0], 1);
}

}  // namespace tandem
