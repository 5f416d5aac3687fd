#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/ops/delta_rule.h"
#include "runtime/ops/delta_rule_device.h"

// As the host kernel goes (delta_rule_host.cpp), which says what is added to what. Every element of a gradient belongs to one
// thread: rows by their column, states by their element, sums by their position. Sums over the value heads of a key head, and
// over sequences for the parameters, are taken by kernels of their own, in one order.
namespace tandem {
namespace {

/// Beside the forward's, all in fp32, by block.
struct DeltaBackwardScratch {
  float *dq, *dk;           ///< [positions, E]
  float* dr;                ///< [positions, P]: of U, then of W
  float *dwriting, *dsums;  ///< [positions]
  float* dstate;            ///< [E, P]
  float* dparameters;       ///< [2]

  static TANDEM_HOST_DEVICE std::int64_t of_block(const DeltaSizes& n) {
    return n.positions * (2 * n.key_dim + n.value_dim + 2) + n.key_dim * n.value_dim + 2;
  }
  TANDEM_HOST_DEVICE DeltaBackwardScratch(const DeltaSizes& n, float* memory, std::int64_t block) {
    dq = memory + block * of_block(n);
    dk = dq + n.positions * n.key_dim;
    dr = dk + n.positions * n.key_dim;
    dwriting = dr + n.positions * n.value_dim;
    dsums = dwriting + n.positions;
    dstate = dsums + n.positions;
    dparameters = dstate + n.key_dim * n.value_dim;
  }
};

template <typename Element>
struct DeltaBackward {
  DeltaOperands<Element> o;
  float* scratch;
  const Element* dout;
  Element *dmixed, *dprojected;
};

/// One chunk in the hands of a block.
template <typename Element>
struct ChunkGradients {
  const DeltaBackward<Element>& g;
  const DeltaSizes& n;
  const DeltaScratch& s;
  const DeltaBackwardScratch& d;
  const std::int64_t b, h, first, end;
  const float* state;     ///< before the chunk
  float *weights, *more;  ///< in shared memory, one number for each position

  TANDEM_DEVICE const float* q(std::int64_t t) const { return s.q + t * n.key_dim; }
  TANDEM_DEVICE const float* k(std::int64_t t) const { return s.k + t * n.key_dim; }
  TANDEM_DEVICE const float* u(std::int64_t t) const { return s.u + t * n.value_dim; }
  TANDEM_DEVICE float* dq(std::int64_t t) const { return d.dq + t * n.key_dim; }
  TANDEM_DEVICE float* dk(std::int64_t t) const { return d.dk + t * n.key_dim; }
  TANDEM_DEVICE float* dr(std::int64_t t) const { return d.dr + t * n.value_dim; }
  TANDEM_DEVICE const Element* dout(std::int64_t t) const { return g.dout + n.out(t, b, h); }
  TANDEM_DEVICE float decay(std::int64_t t, std::int64_t w) const { return rule_decay(n, s.sums, b, t, w); }
  TANDEM_DEVICE float decay_from_start(std::int64_t t) const { return rule_decay_from(n, s.sums, b, t, first); }

  TANDEM_DEVICE void begin() const {
    for (std::int64_t i = first * n.key_dim + threadIdx.x; i < end * n.key_dim; i += blockDim.x) d.dq[i] = d.dk[i] = 0;
    for (std::int64_t i = first * n.value_dim + threadIdx.x; i < end * n.value_dim; i += blockDim.x) d.dr[i] = 0;
    for (std::int64_t t = first + threadIdx.x; t < end; t += blockDim.x) d.dsums[t] = d.dwriting[t] = 0;
    __syncthreads();
  }

  TANDEM_DEVICE void of_state_after() const {
    const std::int64_t last = end - 1;
    for (std::int64_t t = first; t < end; ++t) {
      const float fade = decay(last, t);
      float moved = 0;
      for (std::int64_t e = threadIdx.x; e < n.key_dim; e += blockDim.x) {
        const float of_key = fade * rule_dot(d.dstate + e * n.value_dim, u(t), n.value_dim);
        dk(t)[e] += of_key;
        moved += k(t)[e] * of_key;
      }
      for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x)
        for (std::int64_t e = 0; e < n.key_dim; ++e) dr(t)[p] += fade * k(t)[e] * d.dstate[e * n.value_dim + p];
      moved = block_sum(moved);
      if (threadIdx.x == 0) {
        d.dsums[last] += moved;
        d.dsums[t] -= moved;
      }
    }
    __syncthreads();
    const float fade = decay_from_start(last);
    float held = 0;
    for (std::int64_t i = threadIdx.x; i < n.key_dim * n.value_dim; i += blockDim.x) {
      d.dstate[i] *= fade;
      held += d.dstate[i] * state[i];
    }
    held = block_sum(held);
    if (threadIdx.x == 0) d.dsums[last] += held;
    __syncthreads();
  }

  TANDEM_DEVICE void through_outputs() const {
    for (std::int64_t t = first; t < end; ++t) {
      const float fade = decay_from_start(t);
      float of_sum = 0;
      for (std::int64_t e = threadIdx.x; e < n.key_dim; e += blockDim.x) {
        const float of_query = fade * rule_dot(state + e * n.value_dim, dout(t), n.value_dim);
        dq(t)[e] += of_query;
        of_sum += of_query * q(t)[e];
      }
      for (std::int64_t i = threadIdx.x; i < n.key_dim * n.value_dim; i += blockDim.x)
        d.dstate[i] += fade * q(t)[i / n.value_dim] * to_float(dout(t)[i % n.value_dim]);
      for (std::int64_t w = first + threadIdx.x; w <= t; w += blockDim.x) {
        const float pair = rule_dot(q(t), k(w), n.key_dim) * decay(t, w), dpair = rule_dot(u(w), dout(t), n.value_dim);
        weights[w - first] = pair;
        more[w - first] = dpair * decay(t, w);
        of_sum += dpair * pair;
        d.dsums[w] -= dpair * pair;
      }
      of_sum = block_sum(of_sum);
      if (threadIdx.x == 0) d.dsums[t] += of_sum;
      __syncthreads();
      for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x)
        for (std::int64_t w = first; w <= t; ++w) dr(w)[p] += weights[w - first] * to_float(dout(t)[p]);
      for (std::int64_t e = threadIdx.x; e < n.key_dim; e += blockDim.x) {
        for (std::int64_t w = first; w <= t; ++w) {
          dq(t)[e] += more[w - first] * k(w)[e];
          dk(w)[e] += more[w - first] * q(t)[e];
        }
      }
      __syncthreads();
    }
  }

  TANDEM_DEVICE void through_inverse() const {
    for (std::int64_t t = end - 1; t >= first; --t) {
      for (std::int64_t w = first + threadIdx.x; w < t; w += blockDim.x)
        weights[w - first] = s.writing[t] * rule_dot(k(t), k(w), n.key_dim) * decay(t, w);
      __syncthreads();
      for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x)
        for (std::int64_t w = first; w < t; ++w) dr(w)[p] -= weights[w - first] * dr(t)[p];
      __syncthreads();
    }
    for (std::int64_t t = first; t < end; ++t) {
      float of_writing = 0, of_sum = 0;
      for (std::int64_t w = first + threadIdx.x; w < t; w += blockDim.x) {
        const float da = -rule_dot(dr(t), u(w), n.value_dim), keys = rule_dot(k(t), k(w), n.key_dim) * decay(t, w);
        more[w - first] = da * s.writing[t] * decay(t, w);
        of_writing += da * keys;
        of_sum += da * s.writing[t] * keys;
        d.dsums[w] -= da * s.writing[t] * keys;
      }
      float totals[2] = {of_writing, of_sum};
      block_sums(totals);
      if (threadIdx.x == 0) {
        d.dwriting[t] += totals[0];
        d.dsums[t] += totals[1];
      }
      __syncthreads();
      for (std::int64_t e = threadIdx.x; e < n.key_dim; e += blockDim.x) {
        for (std::int64_t w = first; w < t; ++w) {
          dk(t)[e] += more[w - first] * k(w)[e];
          dk(w)[e] += more[w - first] * k(t)[e];
        }
      }
      __syncthreads();
    }
  }

  TANDEM_DEVICE void through_start() const {
    for (std::int64_t t = first; t < end; ++t) {
      const float fade = decay_from_start(t), factor = s.writing[t] * fade;
      float products[2] = {};
      for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x) {
        products[0] += dr(t)[p] * s.from_state[t * n.value_dim + p];
        products[1] += dr(t)[p] * to_float(g.o.mixed[n.v(t, b, h) + p]);
      }
      block_sums(products);
      if (threadIdx.x == 0) {
        d.dwriting[t] += products[1] - fade * products[0];
        d.dsums[t] -= factor * products[0];
      }
      for (std::int64_t e = threadIdx.x; e < n.key_dim; e += blockDim.x)
        dk(t)[e] -= factor * rule_dot(state + e * n.value_dim, dr(t), n.value_dim);
      for (std::int64_t i = threadIdx.x; i < n.key_dim * n.value_dim; i += blockDim.x)
        d.dstate[i] -= factor * k(t)[i / n.value_dim] * dr(t)[i % n.value_dim];
    }
    __syncthreads();
  }

  /// Turns the gradients of unit vectors into those of what was divided by its length.
  TANDEM_DEVICE void before_length(const float* y, float* dy, float inverse, float scale) const {
    const float projection = rule_dot(y, dy, n.key_dim) / scale;
    for (std::int64_t e = 0; e < n.key_dim; ++e) dy[e] = inverse * (scale * dy[e] - y[e] * projection);
  }

  /// With the sums of the parameters' gradients in thread 0.
  TANDEM_DEVICE void write(float& da_log, float& dbias) const {
    const float scale = 1 / sqrtf(static_cast<float>(n.key_dim)), a = g.o.a(h);
    for (std::int64_t t = first + threadIdx.x; t < end; t += blockDim.x) {
      before_length(q(t), dq(t), s.q_length[t], scale);
      before_length(k(t), dk(t), s.k_length[t], 1.0F);
      for (std::int64_t p = 0; p < n.value_dim; ++p) g.dmixed[n.v(t, b, h) + p] = from_float<Element>(s.writing[t] * dr(t)[p]);
      g.dprojected[n.gate(t, b, h)] = from_float<Element>(d.dwriting[t] * s.writing[t] * (1 - s.writing[t]));
    }
    if (threadIdx.x == 0) {
      float of_decay = 0;
      for (std::int64_t t = end - 1; t >= first; --t) {
        of_decay += d.dsums[t];
        da_log += of_decay * s.decays[t];
        const float draw = of_decay * a / (1 + expf(-g.o.raw_step(t, b, h)));
        g.dprojected[n.step(t, b, h)] = from_float<Element>(draw);
        dbias += draw;
      }
    }
    __syncthreads();
  }
};

template <typename Element>
__global__ void delta_rule_backward_kernel(DeltaBackward<Element> g) {
  TANDEM_DYNAMIC_SHARED(shared);
  const DeltaSizes& n = g.o.n;
  auto *const weights = reinterpret_cast<float*>(shared), *const more = weights + n.chunk;
  const std::int64_t b = blockIdx.x / n.heads, h = blockIdx.x % n.heads;
  const DeltaScratch s(n, g.o.scratch, blockIdx.x);
  const DeltaBackwardScratch d(n, g.scratch, blockIdx.x);
  clear_first_state(n, s);
  for (std::int64_t c = 0; c < n.chunks(); ++c) solve_chunk(g.o, s, b, h, c, weights);
  for (std::int64_t i = threadIdx.x; i < n.key_dim * n.value_dim; i += blockDim.x) d.dstate[i] = 0;
  float da_log = 0, dbias = 0;
  for (std::int64_t c = n.chunks() - 1; c >= 0; --c) {
    const ChunkGradients<Element> chunk{
        g, n, s, d, b, h, c * n.chunk, n.chunk_end(c), s.states + c * n.key_dim * n.value_dim, weights, more};
    chunk.begin();
    chunk.of_state_after();
    chunk.through_outputs();
    chunk.through_inverse();
    chunk.through_start();
    chunk.write(da_log, dbias);
  }
  if (threadIdx.x != 0) return;
  d.dparameters[0] = da_log;
  d.dparameters[1] = dbias;
}

/// Adds up the value heads of each key head.
template <typename Element>
struct KeyHeadSum {
  static constexpr int vector = 1;
  DeltaBackward<Element> g;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const DeltaSizes& n = g.o.n;
    const std::int64_t t = row / n.batch, b = row % n.batch, width = n.key_heads * n.key_dim;
    const std::int64_t head = column % width / n.key_dim, e = column % n.key_dim, of_key = n.heads / n.key_heads;
    float sum = 0;
    for (std::int64_t h = head * of_key; h < (head + 1) * of_key; ++h) {
      const DeltaBackwardScratch d(n, g.scratch, b * n.heads + h);
      sum += (column < width ? d.dq : d.dk)[t * n.key_dim + e];
    }
    g.dmixed[n.row(t, b) * n.mixed_width() + column] = from_float<Element>(sum);
  }
};

/// A thread for each head and kind of parameter.
template <typename Gradient>
__global__ void delta_parameters_kernel(DeltaSizes n, float* scratch, Gradient* dparameters) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, h = i / 2, kind = i % 2;
  if (h >= n.heads) return;
  float sum = 0;
  for (std::int64_t b = 0; b < n.batch; ++b) sum += DeltaBackwardScratch(n, scratch, b * n.heads + h).dparameters[kind];
  Gradient& out = dparameters[kind * n.heads_of_parameters + n.first_head + h];
  out = from_float<Gradient>(to_float(out) + sum);
}

}  // namespace

void delta_rule_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "delta_rule_backward";
  const auto [mixed, projected, parameters, dout, dmixed, dprojected, dparameters] =
      checked<7>(OpKind::delta_rule_backward, operands, any);
  expect_types(of_one_type(mixed, projected, parameters, dout, dmixed, dprojected),
               "delta_rule's operands are of one type, but for the parameters' gradient");
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  Scratch scratch(queue);
  const DeltaSizes n = with_order(name, queue, scratch,
                                  DeltaSizes(mixed.shape, projected.shape, parameters.shape, dout.shape, attributes), attributes);
  const std::int64_t of_block = DeltaScratch::of_block(n) + DeltaBackwardScratch::of_block(n);
  auto* const forward = static_cast<float*>(scratch.take(static_cast<std::size_t>(n.batch * n.heads * of_block) * sizeof(float)));
  float* const backward = forward + n.batch * n.heads * DeltaScratch::of_block(n);
  const dim3 threads(threads_of_rule);
  with_type(mixed.dtype, [&, &mixed = mixed, &projected = projected, &parameters = parameters, &dout = dout, &dmixed = dmixed,
                          &dprojected = dprojected]<typename Element>(Type<Element>) {
    const DeltaOperands<Element> o{n, mixed.template as<const Element>(), projected.template as<const Element>(),
                                   parameters.template as<const Element>(), forward};
    const DeltaBackward<Element> g{o, backward, dout.template as<const Element>(), dmixed.template as<Element>(),
                                   dprojected.template as<Element>()};
    launch(name, queue, {dim3(blocks_along_x(n.batch * n.heads)), threads, static_cast<std::size_t>(2 * n.chunk) * sizeof(float)},
           delta_rule_backward_kernel<Element>, g);
    launch_by_rows(name, queue, n.positions * n.batch, 2 * n.key_heads * n.key_dim, false, KeyHeadSum<Element>{g});
  });
  with_type(dparameters.dtype, [&, &dparameters = dparameters]<typename Gradient>(Type<Gradient>) {
    launch(name, queue, {dim3(blocks_along_x(divide_up(2 * n.heads, threads_of_rule))), threads},
           delta_parameters_kernel<Gradient>, n, backward, dparameters.template as<Gradient>());
  });
}

std::size_t delta_rule_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  const DeltaSizes n(operands[0].shape, operands[1].shape, operands[2].shape, operands[3].shape, attributes);
  return scratch_of(n, attributes, n.batch * n.heads * (DeltaScratch::of_block(n) + DeltaBackwardScratch::of_block(n)));
}

}  // namespace tandem
