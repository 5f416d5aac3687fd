#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/ops/ssd_scan.h"
#include "runtime/ops/ssd_scan_device.h"

// As the host kernel goes (ssd_scan_host.cpp), which says what is added to what; sums over the heads of a group, and over chunks
// for the parameters, are taken by kernels of their own, in one order.
namespace tandem {
namespace {

/// Beside the forward's, all in fp32.
struct SsdBackwardScratch {
  float* dy;                ///< [b, heads, positions, P]: before the gate
  float* dstates;           ///< [b, heads, chunks, P, N]: of the state after each chunk
  float *dkeys, *dqueries;  ///< [b, heads, positions, N]: of each head
  float *dsums, *ddt;       ///< [b, heads, positions]
  float* dparameters;       ///< [b, heads, chunks, 3]

  static std::size_t elements(const SsdSizes& n) {
    const std::int64_t rows = n.batch * n.heads * n.positions;
    return static_cast<std::size_t>(rows * (n.head_dim + 2 * n.state + 2) +
                                    n.batch * n.heads * n.chunks() * (n.head_dim * n.state + 3));
  }
  SsdBackwardScratch(const SsdSizes& n, float* memory) {
    const std::int64_t rows = n.batch * n.heads * n.positions;
    dy = memory;
    dstates = dy + rows * n.head_dim;
    dkeys = dstates + n.batch * n.heads * n.chunks() * n.head_dim * n.state;
    dqueries = dkeys + rows * n.state;
    dsums = dqueries + rows * n.state;
    ddt = dsums + rows;
    dparameters = ddt + rows;
  }
};

template <typename Element>
struct SsdBackward {
  SsdOperands<Element> o;
  SsdBackwardScratch d;
  const Element *y, *dout;
  Element *dmixed, *dprojected;
};

template <typename Element>
__global__ void ssd_gate_kernel(SsdBackward<Element> g) {
  const SsdSizes& n = g.o.n;
  const SsdPlace place(n, blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < place.count * n.head_dim; i += blockDim.x) {
    const std::int64_t t = place.first + i / n.head_dim, p = i % n.head_dim;
    const std::int64_t at = n.y(t, place.b, place.h) + p, gate = n.z(t, place.b, place.h) + p;
    const float z = to_float(g.o.projected[gate]), sigmoid = 1 / (1 + expf(-z)), dout = to_float(g.dout[at]);
    g.d.dy[place.in_sequence * n.head_dim + i] = dout * z * sigmoid;
    g.dprojected[gate] = from_float<Element>(dout * to_float(g.y[at]) * sigmoid * (1 + z * (1 - sigmoid)));
  }
}

/// What the outputs of each chunk say of the state before it.
template <typename Element>
__global__ void ssd_state_gradients_kernel(SsdBackward<Element> g) {
  const SsdSizes& n = g.o.n;
  const SsdPlace place(n, blockIdx.x);
  const float *const sums = g.o.scratch.sums + place.in_sequence, *const dy = g.d.dy + place.in_sequence * n.head_dim;
  for (std::int64_t i = threadIdx.x; i < n.head_dim * n.state; i += blockDim.x) {
    const std::int64_t p = i / n.state, k = i % n.state;
    float sum = 0;
    for (std::int64_t t = 0; t < place.count; ++t)
      sum += place.decay_from_start(sums, t) * dy[t * n.head_dim + p] *
             to_float(g.o.mixed[n.c_of(place.first + t, place.b, place.h) + k]);
    g.d.dstates[place.in_states + i] = sum;
  }
}

/// Turns that into the gradient of the state after each chunk.
template <typename Element>
__global__ void ssd_pass_gradients_kernel(SsdBackward<Element> g) {
  const SsdSizes& n = g.o.n;
  const std::int64_t elements = n.head_dim * n.state, of_head = blockIdx.x;
  const std::int64_t i = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  float gradient = 0;
  for (std::int64_t c = n.chunks() - 1; c >= 0; --c) {
    float& here = g.d.dstates[(of_head * n.chunks() + c) * elements + i];
    const float from_outputs = here;
    here = gradient;
    const SsdPlace place(n, of_head * n.chunks() + c);
    gradient = place.decay_from_start(g.o.scratch.sums + place.in_sequence, place.count - 1) * gradient + from_outputs;
  }
}

/// The gradients of x, and of each head's B and C.
template <typename Element>
__global__ void ssd_inputs_kernel(SsdBackward<Element> g) {
  TANDEM_DYNAMIC_SHARED(shared);
  const SsdSizes& n = g.o.n;
  const SsdPlace place(n, blockIdx.x);
  auto* const values = reinterpret_cast<float*>(shared);  // dy_t . x_u, decayed, by t or by u
  auto* const products = values + n.chunk;                // C_t . B_u, decayed
  const float *const dt = g.o.scratch.dt + place.in_sequence, *const sums = g.o.scratch.sums + place.in_sequence;
  const float *const before = g.o.scratch.states + place.in_states, *const dstate = g.d.dstates + place.in_states;
  const float* const dy = g.d.dy + place.in_sequence * n.head_dim;
  const float skip = to_float(g.o.parameters[n.skip(place.h)]);
  const auto x = [&](std::int64_t u) { return g.o.mixed + n.x(place.first + u, place.b, place.h); };
  const auto keys = [&](std::int64_t u) { return g.o.mixed + n.b_of(place.first + u, place.b, place.h); };
  const auto queries = [&](std::int64_t t) { return g.o.mixed + n.c_of(place.first + t, place.b, place.h); };
  const auto pair = [&](std::int64_t t, std::int64_t u) {
    float product = 0;
    for (std::int64_t p = 0; p < n.head_dim; ++p) product += dy[t * n.head_dim + p] * to_float(x(u)[p]);
    return product * place.decay(sums, t, u);
  };
  float of_skip = 0;
  for (std::int64_t i = 0; i < place.count; ++i) {
    // Position i as a query: of those before it.
    __syncthreads();
    for (std::int64_t u = threadIdx.x; u <= i; u += blockDim.x) values[u] = pair(i, u) * dt[u];
    __syncthreads();
    float of_sum = 0;
    for (std::int64_t k = threadIdx.x; k < n.state; k += blockDim.x) {
      float sum = 0, from_state = 0;
      for (std::int64_t u = 0; u <= i; ++u) sum += values[u] * to_float(keys(u)[k]);
      for (std::int64_t p = 0; p < n.head_dim; ++p) from_state += dy[i * n.head_dim + p] * before[p * n.state + k];
      sum += place.decay_from_start(sums, i) * from_state;
      g.d.dqueries[(place.in_sequence + i) * n.state + k] = sum;
      of_sum += sum * to_float(queries(i)[k]);
    }
    // As a key: of those after it.
    __syncthreads();
    for (std::int64_t t = i + threadIdx.x; t < place.count; t += blockDim.x) {
      values[t] = pair(t, i) * dt[i];
      float product = 0;
      for (std::int64_t k = 0; k < n.state; ++k) product += to_float(queries(t)[k]) * to_float(keys(i)[k]);
      products[t] = product * place.decay(sums, t, i);
    }
    __syncthreads();
    const float to_end = place.decay(sums, place.count - 1, i);
    for (std::int64_t k = threadIdx.x; k < n.state; k += blockDim.x) {
      float sum = 0, from_state = 0;
      for (std::int64_t t = i; t < place.count; ++t) sum += values[t] * to_float(queries(t)[k]);
      for (std::int64_t p = 0; p < n.head_dim; ++p) from_state += to_float(x(i)[p]) * dstate[p * n.state + k];
      sum += to_end * dt[i] * from_state;
      g.d.dkeys[(place.in_sequence + i) * n.state + k] = sum;
      of_sum -= sum * to_float(keys(i)[k]);
    }
    float of_dt = 0;
    for (std::int64_t p = threadIdx.x; p < n.head_dim; p += blockDim.x) {
      float sum = 0, from_state = 0;
      for (std::int64_t t = i; t < place.count; ++t) sum += products[t] * dy[t * n.head_dim + p];
      for (std::int64_t k = 0; k < n.state; ++k) from_state += dstate[p * n.state + k] * to_float(keys(i)[k]);
      sum += to_end * from_state;
      const float x_p = to_float(x(i)[p]), dy_p = dy[i * n.head_dim + p];
      g.dmixed[n.x(place.first + i, place.b, place.h) + p] = from_float<Element>(dt[i] * sum + skip * dy_p);
      of_dt += sum * x_p;
      of_skip += dy_p * x_p;
    }
    float totals[2] = {of_sum, of_dt};
    block_sums(totals);
    if (threadIdx.x == 0) {
      g.d.dsums[place.in_sequence + i] = totals[0];
      g.d.ddt[place.in_sequence + i] = totals[1];
    }
  }
  // The last sum also decays the state before the chunk and what the chunk adds to it: their gradient times the state after it.
  float of_last = 0;
  if (place.c + 1 < n.chunks())
    for (std::int64_t i = threadIdx.x; i < n.head_dim * n.state; i += blockDim.x)
      of_last += dstate[i] * before[n.head_dim * n.state + i];
  float totals[2] = {of_last, of_skip};
  block_sums(totals);
  if (threadIdx.x != 0) return;
  g.d.dsums[place.in_sequence + place.count - 1] += totals[0];
  g.d.dparameters[std::int64_t{blockIdx.x} * 3 + 2] = totals[1];
}

/// One thread for a chunk.
template <typename Element>
__global__ void ssd_times_kernel(SsdBackward<Element> g, std::int64_t chunks) {
  const std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (block >= chunks) return;
  const SsdPlace place(g.o.n, block);
  const float a = g.o.a(place.h);
  float da = 0, da_log = 0, dbias = 0;
  for (std::int64_t i = place.count - 1; i >= 0; --i) {
    const std::int64_t at = place.in_sequence + i, t = place.first + i;
    da += g.d.dsums[at];
    da_log += da * g.o.scratch.dt[at] * a;
    const float draw = (g.d.ddt[at] + da * a) / (1 + expf(-g.o.raw_dt(t, place.b, place.h)));
    g.dprojected[g.o.n.dt(t, place.b, place.h)] = from_float<Element>(draw);
    dbias += draw;
  }
  g.d.dparameters[block * 3] = da_log;
  g.d.dparameters[block * 3 + 1] = dbias;
}

/// Adds up the heads of each group.
template <typename Element>
struct SsdGroupSum {
  static constexpr int vector = 1;
  SsdBackward<Element> g;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const SsdSizes& n = g.o.n;
    const std::int64_t t = row / n.batch, b = row % n.batch, width = n.groups * n.state;
    const std::int64_t group = column % width / n.state, k = column % n.state, heads = n.heads / n.groups;
    const float* const of_heads = column < width ? g.d.dkeys : g.d.dqueries;
    float sum = 0;
    for (std::int64_t h = group * heads; h < (group + 1) * heads; ++h)
      sum += of_heads[((b * n.heads + h) * n.positions + t) * n.state + k];
    g.dmixed[n.row(t, b) * n.mixed_width() + n.inner() + column] = from_float<Element>(sum);
  }
};

/// A block for each head and kind of parameter.
template <typename Gradient>
__global__ void ssd_parameters_kernel(SsdSizes n, const float* of_chunks, Gradient* dparameters) {
  const std::int64_t h = blockIdx.x / 3, kind = blockIdx.x % 3;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n.batch * n.chunks(); i += blockDim.x)
    sum += of_chunks[((i / n.chunks() * n.heads + h) * n.chunks() + i % n.chunks()) * 3 + kind];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  Gradient& out = dparameters[kind * n.heads_of_parameters + n.first_head + h];
  out = from_float<Gradient>(to_float(out) + sum);
}

}  // namespace

void ssd_scan_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "ssd_scan_backward";
  const auto [mixed, projected, parameters, y, dout, dmixed, dprojected, dparameters] =
      checked<8>(OpKind::ssd_scan_backward, operands, any);
  expect_types(of_one_type(mixed, projected, parameters, y, dout, dmixed, dprojected),
               "ssd_scan's operands are of one type, but for the parameters' gradient");
  const auto& attributes = std::get<SsdAttributes>(any);
  Scratch all(queue);
  const SsdSizes n =
      with_order(name, queue, all, SsdSizes(mixed.shape, projected.shape, parameters.shape, y.shape, attributes), attributes);
  auto* const scratch =
      static_cast<float*>(all.take((SsdScratch::elements(n) + SsdBackwardScratch::elements(n)) * sizeof(float)));
  const SsdBackwardScratch d(n, scratch + SsdScratch::elements(n));
  const dim3 chunks = ssd_chunk_blocks(n), threads(threads_of_chunk);
  const auto launch_all = [&]<typename Element>(const SsdBackward<Element>& g) {
    launch_ssd_states(name, queue, g.o);
    launch(name, queue, {chunks, threads}, ssd_gate_kernel<Element>, g);
    launch(name, queue, {chunks, threads}, ssd_state_gradients_kernel<Element>, g);
    launch(name, queue, {ssd_state_blocks(n), threads}, ssd_pass_gradients_kernel<Element>, g);
    launch(name, queue, {chunks, threads, static_cast<std::size_t>(2 * n.chunk) * sizeof(float)}, ssd_inputs_kernel<Element>, g);
    launch(name, queue, {dim3(blocks_along_x(divide_up(chunks.x, threads_of_chunk))), threads}, ssd_times_kernel<Element>, g,
           std::int64_t{chunks.x});
    launch_by_rows(name, queue, n.positions * n.batch, 2 * n.groups * n.state, false, SsdGroupSum<Element>{g});
  };
  with_type(mixed.dtype, [&, &mixed = mixed, &projected = projected, &parameters = parameters, &y = y, &dout = dout,
                          &dmixed = dmixed, &dprojected = dprojected]<typename Element>(Type<Element>) {
    const SsdOperands<Element> o{n, mixed.template as<const Element>(), projected.template as<const Element>(),
                                 parameters.template as<const Element>(), SsdScratch(n, scratch)};
    launch_all(SsdBackward<Element>{o, d, y.template as<const Element>(), dout.template as<const Element>(),
                                    dmixed.template as<Element>(), dprojected.template as<Element>()});
  });
  with_type(dparameters.dtype, [&, &dparameters = dparameters]<typename Gradient>(Type<Gradient>) {
    launch(name, queue, {dim3(blocks_along_x(3 * n.heads)), threads}, ssd_parameters_kernel<Gradient>, n, d.dparameters,
           dparameters.template as<Gradient>());
  });
}

std::size_t ssd_scan_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SsdAttributes>(any);
  const SsdSizes n(operands[0].shape, operands[1].shape, operands[2].shape, operands[3].shape, attributes);
  return scratch_of(n, attributes, SsdScratch::elements(n) + SsdBackwardScratch::elements(n));
}

}  // namespace tandem
