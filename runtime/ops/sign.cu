#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// sign_compress reads everything twice: once for the means, once for the signs. All move the bytes of their cost.
namespace tandem {
namespace {

constexpr int signs_of_byte = 8, threads_of_mean = 256;
constexpr std::int64_t most_sums_of_part = 64, elements_of_sum = 16384;

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

/// Block (x, y): partial sum x of part y.
template <typename Element>
__global__ void magnitudes_kernel(const Element* x, const Element* residual, SignedParts parts, float* sums) {
  const std::int64_t first = std::int64_t{blockIdx.y} * parts.part, count = parts.count(blockIdx.y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    sum += fabsf(to_float(x[first + i]) + to_float(residual[first + i]));
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

struct MeanMagnitudes {
  static constexpr int vector = 1;
  const float* sums;
  float* scales;
  int sums_of_part;
  SignedParts parts;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t part) const {
    float sum = 0;
    for (int i = 0; i < sums_of_part; ++i) sum += sums[part * sums_of_part + i];
    const std::int64_t count = parts.count(part);
    scales[part] = count > 0 ? sum / static_cast<float>(count) : 0.0F;
  }
};

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

  template <int n>
  TANDEM_DEVICE void at(std::int64_t byte) const {
    const std::int64_t first = byte * signs_of_byte;
    const float scale = scales[first / parts.part];
    unsigned bits = 0;
    for (int j = 0; j < signs_of_byte; ++j) {
      const std::int64_t i = first + j;
      const bool there = i < parts.valid;
      const float value = there ? to_float(x[i]) + to_float(residual[i]) : 0.0F;
      const bool positive = value >= 0;
      bits |= (positive ? 1U : 0U) << j;
      if (i < elements) residual[i] = from_float<Element>(there ? value - (positive ? scale : -scale) : 0.0F);
    }
    signs[byte] = static_cast<std::uint8_t>(bits);
  }
};

TANDEM_DEVICE float signed_scale(unsigned bits, int j, float scale) { return (bits >> j & 1U) != 0 ? scale : -scale; }

/// By byte of a part.
template <typename Element>
struct AddSigns {
  static constexpr int vector = 1;
  const std::uint8_t* signs;
  const float* scales;
  Element* y;
  std::int64_t parts, bytes;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t byte) const {
    float sums[signs_of_byte] = {};
    for (std::int64_t part = 0; part < parts; ++part) {
      const unsigned bits = signs[part * bytes + byte];
      for (int j = 0; j < signs_of_byte; ++j) sums[j] += signed_scale(bits, j, scales[part]);
    }
    for (int j = 0; j < signs_of_byte; ++j) y[byte * signs_of_byte + j] = from_float<Element>(sums[j]);
  }
};

template <typename Element>
struct ExpandSigns {
  static constexpr int vector = 1;
  const std::uint8_t* signs;
  const float* scales;
  Element* y;
  std::int64_t part;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    y[i] = from_float<Element>(signed_scale(signs[i / signs_of_byte], static_cast<int>(i % signs_of_byte), scales[i / part]));
  }
};

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
    const auto* const from = x.as<const Element>();
    launch("sign_compress", queue, {dim3(static_cast<unsigned>(sums), static_cast<unsigned>(count)), dim3(threads_of_mean)},
           magnitudes_kernel<Element>, from, residual.as<const Element>(), parts, partial);
    launch_elementwise("sign_compress", queue, count, true, MeanMagnitudes{partial, scales.as<float>(), sums, parts});
    launch_elementwise("sign_compress", queue, signs.shape.elements(), true,
                       PackSigns<Element>{from, scales.as<const float>(), signs.as<std::uint8_t>(), residual.as<Element>(), parts,
                                          x.shape.elements()});
  });
}

std::size_t sign_compress_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  const Shape& signs = operands[1].shape;
  return static_cast<std::size_t>(signs[0] * sums_of_part(signs[1] * signs_of_byte)) * sizeof(float);
}

void sign_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [signs, scales, y] = checked<3>(OpKind::sign_sum, operands, attributes);
  expect_sign_types(signs, scales);
  with_type(y.dtype, [&, signs = signs, scales = scales, y = y]<typename Element>(Type<Element>) {
    launch_elementwise("sign_sum", queue, signs.shape[1], true,
                       AddSigns<Element>{signs.as<const std::uint8_t>(), scales.as<const float>(), y.as<Element>(),
                                         signs.shape[0], signs.shape[1]});
  });
}

void sign_expand_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [signs, scales, y] = checked<3>(OpKind::sign_expand, operands, attributes);
  expect_sign_types(signs, scales);
  with_type(y.dtype, [&, signs = signs, scales = scales, y = y]<typename Element>(Type<Element>) {
    launch_elementwise("sign_expand", queue, y.shape.elements(), true,
                       ExpandSigns<Element>{signs.as<const std::uint8_t>(), scales.as<const float>(), y.as<Element>(),
                                            signs.shape[1] * signs_of_byte});
  });
}

}  // namespace tandem
