#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Moves the bytes of its cost.
namespace tandem {
namespace {

/// How much each side weighs in the sum, and its logarithm.
struct Weights {
  float keep = 1, take = 0, log_sum = 0;

  TANDEM_DEVICE Weights(float kept, float taken) : log_sum(fmaxf(kept, taken)) {
    if (isinf(log_sum)) return;  // neither side sees a key
    const float a = expf(kept - log_sum), b = expf(taken - log_sum);
    keep = a / (a + b);
    take = b / (a + b);
    log_sum += logf(a + b);
  }
};

/// Threads along x share a row, a query's output of one head, and lie in one warp: they read lse before one of them writes it.
template <int vector, typename Element>
__global__ void attention_merge_kernel(const Element* part, const float* part_lse, Element* out, float* lse, std::int64_t rows,
                                       std::int64_t queries, std::int64_t heads, std::int64_t width) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const std::int64_t of_lse = row % heads * queries + row / heads;
  const Weights weights(lse[of_lse], part_lse[of_lse]);
  for (std::int64_t i = std::int64_t{threadIdx.x} * vector; i < width; i += std::int64_t{blockDim.x} * vector) {
    float kept[vector], taken[vector];
    load(out + row * width + i, kept);
    load(part + row * width + i, taken);
    for (int j = 0; j < vector; ++j) kept[j] = weights.keep * kept[j] + weights.take * taken[j];
    store(out + row * width + i, kept);
  }
  const unsigned threads = blockDim.x, lane = (threadIdx.y * threads + threadIdx.x) % lanes_of_warp;
  __syncwarp(threads == lanes_of_warp ? every_lane : ((1U << threads) - 1) << (lane / threads * threads));
  if (threadIdx.x == 0) lse[of_lse] = weights.log_sum;
}

}  // namespace

void attention_merge_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [part, part_lse, out, lse] = checked<4>(OpKind::attention_merge, operands, attributes);
  expect_types(of_one_type(part, out) && part_lse.dtype == DType::f32 && lse.dtype == DType::f32,
               "attention_merge joins outputs of one type and fp32 logarithms");
  const std::int64_t queries = out.shape[0], heads = out.shape[1] * out.shape[2], width = out.shape[3];
  with_type(out.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = width % vector == 0 && are_aligned({part, out}, vector);
    const unsigned along_row = std::min(threads_along_row(divide_up(width, aligned ? vector : 1)), unsigned{lanes_of_warp});
    const unsigned rows = threads_of_elementwise / along_row;
    launch("attention_merge", queue, {dim3(blocks_along_x(divide_up(queries * heads, rows))), dim3(along_row, rows)},
           aligned ? attention_merge_kernel<vector, Element> : attention_merge_kernel<1, Element>,
           part.template as<const Element>(), part_lse.template as<const float>(), out.template as<Element>(),
           lse.template as<float>(), queries * heads, queries, heads, width);
  });
}

}  // namespace tandem
