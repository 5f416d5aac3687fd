#include "runtime/cuda/module/kernels.h"
#include "runtime/ops/delta_rule.h"
#include "runtime/ops/delta_rule_device.h"

namespace tandem {
namespace {

template <typename Element>
__global__ void delta_rule_kernel(DeltaOperands<Element> o, Element* out) {
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const weights = reinterpret_cast<float*>(shared);
  const DeltaSizes& n = o.n;
  const std::int64_t b = blockIdx.x / n.heads, h = blockIdx.x % n.heads;
  const DeltaScratch s(n, o.scratch, blockIdx.x);
  clear_first_state(n, s);
  for (std::int64_t c = 0; c < n.chunks(); ++c) {
    solve_chunk(o, s, b, h, c, weights);
    const std::int64_t first = c * n.chunk;
    const float* const state = s.states + c * n.key_dim * n.value_dim;
    for (std::int64_t t = first; t < n.chunk_end(c); ++t) {
      const float* const query = s.q + t * n.key_dim;
      for (std::int64_t w = first + threadIdx.x; w <= t; w += blockDim.x)
        weights[w - first] = rule_dot(query, s.k + w * n.key_dim, n.key_dim) * rule_decay(n, s.sums, b, t, w);
      __syncthreads();
      for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x) {
        float sum = 0;
        for (std::int64_t e = 0; e < n.key_dim; ++e) sum += query[e] * state[e * n.value_dim + p];
        sum *= rule_decay_from(n, s.sums, b, t, first);
        for (std::int64_t w = first; w <= t; ++w) sum += weights[w - first] * s.u[w * n.value_dim + p];
        out[n.out(t, b, h) + p] = from_float<Element>(sum);
      }
      __syncthreads();
    }
  }
}

}  // namespace

void delta_rule_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out] = checked<4>(OpKind::delta_rule, operands, any);
  expect_types(of_one_type(mixed, projected, parameters, out), "delta_rule's operands are of one type");
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  Scratch scratch(queue);
  const DeltaSizes n = with_order("delta_rule", queue, scratch,
                                  DeltaSizes(mixed.shape, projected.shape, parameters.shape, out.shape, attributes), attributes);
  auto* const numbers =
      static_cast<float*>(scratch.take(static_cast<std::size_t>(n.batch * n.heads * DeltaScratch::of_block(n)) * sizeof(float)));
  with_type(mixed.dtype, [&, mixed = mixed, projected = projected, parameters = parameters,
                          out = out]<typename Element>(Type<Element>) {
    const DeltaOperands<Element> o{n, mixed.template as<const Element>(), projected.template as<const Element>(),
                                   parameters.template as<const Element>(), numbers};
    launch("delta_rule", queue,
           {dim3(blocks_along_x(n.batch * n.heads)), dim3(threads_of_rule), static_cast<std::size_t>(n.chunk) * sizeof(float)},
           delta_rule_kernel<Element>, o, out.template as<Element>());
  });
}

std::size_t delta_rule_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  const DeltaSizes n(operands[0].shape, operands[1].shape, operands[2].shape, operands[3].shape, attributes);
  return scratch_of(n, attributes, n.batch * n.heads * DeltaScratch::of_block(n));
}

}  // namespace tandem
