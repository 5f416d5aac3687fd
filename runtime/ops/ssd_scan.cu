#include "runtime/cuda/module/kernels.h"
#include "runtime/ops/ssd_scan.h"
#include "runtime/ops/ssd_scan_device.h"

namespace tandem {
namespace {

/// A block goes through the positions of its chunk: weights of the positions before in shared memory, then a thread for each
/// element of the head.
template <typename Element>
__global__ void ssd_outputs_kernel(SsdOperands<Element> o, Element* out, Element* y) {
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const weights = reinterpret_cast<float*>(shared);
  const SsdPlace place(o.n, blockIdx.x);
  const float *const dt = o.scratch.dt + place.in_sequence, *const sums = o.scratch.sums + place.in_sequence;
  const float* const state = o.scratch.states + place.in_states;
  const float skip = to_float(o.parameters[o.n.skip(place.h)]);
  for (std::int64_t t = 0; t < place.count; ++t) {
    const Element* const query = o.mixed + o.n.c_of(place.first + t, place.b, place.h);
    __syncthreads();
    for (std::int64_t u = threadIdx.x; u <= t; u += blockDim.x) {
      const Element* const key = o.mixed + o.n.b_of(place.first + u, place.b, place.h);
      float product = 0;
      for (std::int64_t k = 0; k < o.n.state; ++k) product += to_float(query[k]) * to_float(key[k]);
      weights[u] = product * (place.decay(sums, t, u) * dt[u]);
    }
    __syncthreads();
    const float decay = place.decay_from_start(sums, t);
    for (std::int64_t p = threadIdx.x; p < o.n.head_dim; p += blockDim.x) {
      float sum = 0, from_state = 0;
      for (std::int64_t u = 0; u <= t; ++u) sum += weights[u] * to_float(o.mixed[o.n.x(place.first + u, place.b, place.h) + p]);
      for (std::int64_t k = 0; k < o.n.state; ++k) from_state += state[p * o.n.state + k] * to_float(query[k]);
      sum += decay * from_state + skip * to_float(o.mixed[o.n.x(place.first + t, place.b, place.h) + p]);
      const float z = to_float(o.projected[o.n.z(place.first + t, place.b, place.h) + p]);
      const std::int64_t at = o.n.y(place.first + t, place.b, place.h) + p;
      y[at] = from_float<Element>(sum);
      out[at] = from_float<Element>(sum * z / (1 + expf(-z)));
    }
  }
}

}  // namespace

void ssd_scan_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out, y] = checked<5>(OpKind::ssd_scan, operands, any);
  expect_types(of_one_type(mixed, projected, parameters, out, y), "ssd_scan's operands are of one type");
  const auto& attributes = std::get<SsdAttributes>(any);
  Scratch scratch(queue);
  const SsdSizes n = with_order("ssd_scan", queue, scratch,
                                SsdSizes(mixed.shape, projected.shape, parameters.shape, out.shape, attributes), attributes);
  auto* const numbers = static_cast<float*>(scratch.take(SsdScratch::elements(n) * sizeof(float)));
  with_type(mixed.dtype, [&, mixed = mixed, projected = projected, parameters = parameters, out = out,
                          y = y]<typename Element>(Type<Element>) {
    const SsdOperands<Element> o{n, mixed.template as<const Element>(), projected.template as<const Element>(),
                                 parameters.template as<const Element>(), SsdScratch(n, numbers)};
    launch_ssd_states("ssd_scan", queue, o);
    launch("ssd_scan", queue, {ssd_chunk_blocks(n), dim3(threads_of_chunk), static_cast<std::size_t>(n.chunk) * sizeof(float)},
           ssd_outputs_kernel<Element>, o, out.template as<Element>(), y.template as<Element>());
  });
}

std::size_t ssd_scan_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SsdAttributes>(any);
  const SsdSizes n(operands[0].shape, operands[1].shape, operands[2].shape, operands[3].shape, attributes);
  return scratch_of(n, attributes, SsdScratch::elements(n));
}

}  // namespace tandem
