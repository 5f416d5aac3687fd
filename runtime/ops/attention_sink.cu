#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Forward moves the bytes of its cost. Backward, a block goes over all the outputs of one head, a warp over one.
namespace tandem {
namespace {

constexpr int threads_of_head = 256, warps_of_head = threads_of_head / lanes_of_warp;

/// Where a query's output of one head lies, and its lse.
struct SinkSizes {
  std::int64_t queries, batch, heads, width;

  TANDEM_DEVICE std::int64_t output(std::int64_t query, std::int64_t b, std::int64_t head) const {
    return ((query * batch + b) * heads + head) * width;
  }
  TANDEM_DEVICE std::int64_t log_sum(std::int64_t query, std::int64_t b, std::int64_t head) const {
    return (b * heads + head) * queries + query;
  }
};

template <typename Element>
__global__ void attention_sink_kernel(SinkSizes sizes, const Element* sink, Element* out, float* lse) {
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_head + threadIdx.x / lanes_of_warp;
  if (row >= sizes.queries * sizes.batch * sizes.heads) return;
  const std::int64_t head = row % sizes.heads, b = row / sizes.heads % sizes.batch, query = row / sizes.heads / sizes.batch;
  float& of_row = lse[sizes.log_sum(query, b, head)];
  const float log_sum = of_row, score = to_float(sink[head]), largest = fmaxf(log_sum, score);
  const float joint = largest + logf(expf(log_sum - largest) + expf(score - largest)), share = expf(log_sum - joint);
  Element* const to = out + sizes.output(query, b, head);
  for (std::int64_t e = lane; e < sizes.width; e += lanes_of_warp) to[e] = from_float<Element>(share * to_float(to[e]));
  __syncwarp();
  if (lane == 0) of_row = joint;
}

template <typename Element, typename Gradient>
__global__ void attention_sink_backward_kernel(SinkSizes sizes, const Element* sink, const Element* out, const float* lse,
                                               const Element* dout, Gradient* dsink) {
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const std::int64_t head = blockIdx.x;
  const float score = to_float(sink[head]);
  float sum = 0;
  for (std::int64_t pair = threadIdx.x / lanes_of_warp; pair < sizes.queries * sizes.batch; pair += warps_of_head) {
    const std::int64_t query = pair / sizes.batch, b = pair % sizes.batch, at = sizes.output(query, b, head);
    const float weight = expf(score - lse[sizes.log_sum(query, b, head)]);
    for (std::int64_t e = lane; e < sizes.width; e += lanes_of_warp)
      sum += weight * to_float(out[at + e]) * to_float(dout[at + e]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) dsink[head] = from_float<Gradient>(to_float(dsink[head]) - sum);
}

SinkSizes sizes_of(const Shape& out) { return {out[0], out[1], out[2], out[3]}; }

}  // namespace

void attention_sink_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [sink, out, lse] = checked<3>(OpKind::attention_sink, operands, attributes);
  expect_types(of_one_type(sink, out) && lse.dtype == DType::f32, "attention_sink takes one type, and lse in fp32");
  with_type(out.dtype, [&, sink = sink, out = out, lse = lse]<typename Element>(Type<Element>) {
    const std::int64_t rows = out.shape[0] * out.shape[1] * out.shape[2];
    launch("attention_sink", queue, {dim3(blocks_along_x(divide_up(rows, warps_of_head))), dim3(threads_of_head)},
           attention_sink_kernel<Element>, sizes_of(out.shape), sink.template as<const Element>(), out.template as<Element>(),
           lse.template as<float>());
  });
}

void attention_sink_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [sink, out, lse, dout, dsink] = checked<5>(OpKind::attention_sink_backward, operands, attributes);
  expect_types(of_one_type(sink, out, dout) && lse.dtype == DType::f32, "attention_sink takes one type, and lse in fp32");
  with_type(out.dtype, [&, sink = sink, out = out, lse = lse, dout = dout, dsink = dsink]<typename Element>(Type<Element>) {
    with_type(dsink.dtype, [&]<typename Gradient>(Type<Gradient>) {
      launch("attention_sink_backward", queue, {dim3(static_cast<unsigned>(out.shape[2])), dim3(threads_of_head)},
             attention_sink_backward_kernel<Element, Gradient>, sizes_of(out.shape), sink.template as<const Element>(),
             out.template as<const Element>(), lse.template as<const float>(), dout.template as<const Element>(),
             dsink.template as<Gradient>());
    });
  });
}

}  // namespace tandem
