#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_gates_device.h"
#include "runtime/ops/hyper_sizes.h"
#include "runtime/ops/row_team_device.h"
#include "runtime/ops/row_walk_device.h"

// A thread takes vectors of all streams at one place; what is summed along a row is summed by a team of threads for each token,
// or, where gates are made of the sum, by a block, of which a warp makes them. The gradients of factors and biases are written by
// token, and a block sums each of them. Kernels are compiled for up to 4 and up to 8 streams, which so stay in registers.
namespace tandem {
namespace {

template <int most>
struct Streams {};
template <typename Visit>
void with_streams(const HyperSizes& n, Visit visit) {
  if (n.streams <= 4) return visit(Streams<4>{});
  visit(Streams<HyperSizes::most_streams>{});
}

/// Loads the vectors of all streams at one place; `first` is that of the first stream.
template <int most, int count, typename Element>
TANDEM_DEVICE void load_streams(const HyperSizes& n, const Element* first, float (&values)[most][count]) {
#pragma unroll
  for (int j = 0; j < most; ++j) {
    if (j < n.streams) {
      load(first + j * n.width, values[j]);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) values[j][i] = 0;
    }
  }
}

template <typename Element>
struct ExpandedRow {
  const HyperSizes& n;
  const Element* x;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    alignas(widest_access) Element raw[count];
    constexpr int bytes = count * static_cast<int>(sizeof(Element));
    copy_aligned<bytes>(raw, x + column);
    for (int j = 0; j < n.streams; ++j) copy_aligned<bytes>(y + j * n.width + column, raw);
  }
};

template <typename Element>
struct HyperExpand {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  Element* y;

  TANDEM_DEVICE ExpandedRow<Element> row(std::int64_t token) const {
    return {n, x + token * n.width, y + token * n.streams * n.width};
  }
};

/// y = the sum of factor_j x_j; the factors are gates of the token, or where these are null 1.
template <int most, typename Element>
struct GatheredRow {
  const HyperSizes& n;
  const Element* x;
  Element* y;
  float factors[most];

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    float streams[most][count], sums[count] = {};
    load_streams(n, x + column, streams);
#pragma unroll
    for (int j = 0; j < most; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += factors[j] * streams[j][i];
    store(y + column, sums);
  }
};

template <int most, typename Element>
struct HyperGather {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  const float* gates;
  Element* y;

  TANDEM_DEVICE GatheredRow<most, Element> row(std::int64_t token) const {
    GatheredRow<most, Element> result{n, x + token * n.streams * n.width, y + token * n.width, {}};
#pragma unroll
    for (int j = 0; j < most; ++j)
      if (j < n.streams) result.factors[j] = gates == nullptr ? 1.0F : gates[token * n.gates + j];
    return result;
  }
};

constexpr int most_threads_of_gates = 128;

/// 1 / the root of the mean of squares of a row, which the block reads by vectors where `vector` is not 1.
template <int vector, typename Element>
TANDEM_DEVICE float inverse_root_mean_square(const Element* row, int count, float epsilon) {
  float squares = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) * vector; i < count; i += static_cast<int>(blockDim.x) * vector) {
    float values[vector];
    load(row + i, values);
#pragma unroll
    for (int j = 0; j < vector; ++j) squares += values[j] * values[j];
  }
  return 1 / sqrtf(block_sum(squares) / static_cast<float>(count) + epsilon);
}

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_gates)
    hyper_gates_kernel(const Element* x, const float* logits, const Element* base, float* gates, HyperSizes n,
                       HyperAttributes attributes) {
  const std::int64_t token = blockIdx.x;
  const auto all = static_cast<int>(n.streams * n.width);
  const float inverse = inverse_root_mean_square<vector>(x + token * all, all, attributes.epsilon_of_norm);
  if (threadIdx.x >= lanes_of_warp) return;
  const float* const z = logits + token * n.gates;
  float* const out = gates + token * n.gates;
  HyperGatesOfLanes<most> of_token(n, attributes.iterations, attributes.epsilon, nullptr);
  of_token.forward([=](int g) { return to_float(base[n.factor_of(g)]) * (z[g] * inverse) + to_float(base[n.factors + g]); });
  const int j = of_token.lane();
  if (!of_token.there()) return;
  out[j] = of_token.read;
  if (!n.mixes()) return;
  out[n.write(j)] = of_token.write;
#pragma unroll
  for (int to = 0; to < most; ++to)
    if (to < n.streams) out[n.mix(j, to)] = of_token.mix[to];
}

/// What a warp makes a token's gates and their gradients of, in shared memory, so that it is loaded while x is.
template <int most>
struct GatesOperands {
  static constexpr int most_gates = most * (most + 2), most_factors = 3;
  float logits[most_gates], dgates[most_gates], base[most_factors + most_gates];
};

/// Of that warp: returns, in all lanes, the factor of x in the gradient of x. of_base [factors + gates, T], from the token's
/// column on: the token's share of the gradient of `base`.
template <int most>
TANDEM_DEVICE float gates_backward(const GatesOperands<most>& of_token, SinkhornDivisors<most>* divisors, float* dlogits,
                                   float* of_base, float inverse, const HyperSizes& n, const HyperAttributes& attributes) {
  const float *const z = of_token.logits, *const base = of_token.base, *const dgates = of_token.dgates;
  HyperGatesOfLanes<most> gates(n, attributes.iterations, attributes.epsilon, divisors);
  gates.forward([=](int g) { return base[n.factor_of(g)] * (z[g] * inverse) + base[n.factors + g]; });
  const int j = gates.lane();
  const bool there = gates.there(), mixes = n.mixes();
  float dread = there ? dgates[j] : 0.0F, dwrite = there && mixes ? dgates[n.write(j)] : 0.0F, dmix[most] = {};
#pragma unroll
  for (int to = 0; to < most; ++to)
    if (there && mixes && to < n.streams) dmix[to] = dgates[n.mix(j, to)];
  gates.backward(dread, dwrite, dmix);
  constexpr int through_norm = 3;
  float sums[4] = {};  // of the factors' gradients, and through the norm
  const auto add = [&](int g, int factor, float gradient) {
    const float a = base[factor];
    of_base[(n.factors + g) * n.tokens] = gradient;
    dlogits[g] = gradient * a * inverse;
    sums[through_norm] -= gradient * a * z[g];
    sums[factor] += gradient * z[g] * inverse;
  };
  if (there) {
    add(j, 0, dread);
    if (mixes) {
      add(n.write(j), 1, dwrite);
#pragma unroll
      for (int to = 0; to < most; ++to)
        if (to < n.streams) add(n.mix(j, to), 2, dmix[to]);
    }
  }
  sums_of_lanes<lanes_of_warp>(sums);
#pragma unroll
  for (int factor = 0; factor < 3; ++factor)
    if (j == 0 && factor < n.factors) of_base[factor * n.tokens] = sums[factor];
  return sums[through_norm] * inverse * inverse * inverse / static_cast<float>(n.streams * n.width);
}

/// How the backward of gates uses a token's row of x twice: held in shared memory, its gradient in registers, so that other
/// blocks move data while some make gates and these have theirs under way; or read again, by few large blocks, so that a cache
/// still has it.
template <bool holds>
struct GatesBackwardBlock {
  static constexpr int most_threads = holds ? 256 : 512, blocks = 2;
  static constexpr int vectors_of_thread = 16, gradients_at_once = holds ? vectors_of_thread : 4;
};
constexpr std::int64_t most_bytes_held =
    GatesBackwardBlock<true>::most_threads * GatesBackwardBlock<true>::vectors_of_thread * widest_access;

/// by_token [factors + gates, T]: each token's share of the gradient of `base`. Whole vectors alone are held.
template <int most, int vector, bool holds, typename Element>
__global__ void __launch_bounds__(GatesBackwardBlock<holds>::most_threads, GatesBackwardBlock<holds>::blocks)
    hyper_gates_backward_kernel(const Element* x, const float* logits, const Element* base, const float* dgates, float* dlogits,
                                Element* dx, float* by_token, HyperSizes n, HyperAttributes attributes) {
  constexpr int bytes = vector * static_cast<int>(sizeof(Element)), at_once = GatesBackwardBlock<holds>::gradients_at_once;
  TANDEM_SHARED(float, of_norm, 1);
  TANDEM_SHARED(GatesOperands<most>, of_token, 1);
  TANDEM_SHARED(SinkhornDivisors<most>, divisors, 1);
  TANDEM_DYNAMIC_SHARED(shared);
  const std::int64_t token = blockIdx.x;
  const auto all = static_cast<int>(n.streams * n.width);
  const int thread = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x) * vector;
  const Element* row = x + token * all;
  Element* const gradient = dx + token * all;
  if constexpr (holds) {
    auto* const held = reinterpret_cast<Element*>(shared);
    for (int i = thread * vector; i < all; i += stride) copy_async(held + i, row + i);
    copy_async_commit();
    row = held;
  }
  for (int g = thread; g < n.factors + n.gates; g += static_cast<int>(blockDim.x)) {
    of_token->base[g] = to_float(base[g]);
    if (g >= n.gates) continue;
    of_token->logits[g] = logits[token * n.gates + g];
    of_token->dgates[g] = dgates[token * n.gates + g];
  }
  // As words; those that are held are loaded without a branch (past the row its end once more), behind which nvcc would take them
  // apart to elements, of a register each.
  using Word = std::conditional_t<holds, std::uint32_t, Element>;
  alignas(widest_access) Word raw[at_once][bytes / sizeof(Word)];
  const auto load_gradients = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int from = holds ? smaller(first + i * stride, all - vector) : first + i * stride;
      if (holds || from < all) copy_aligned<bytes>(raw[i], gradient + from);
    }
  };
  if constexpr (holds) load_gradients(thread * vector);
  copy_async_wait<0>();  // a thread uses what it has copied itself
  const float inverse = inverse_root_mean_square<vector>(row, all, attributes.epsilon_of_norm);
  if (thread < lanes_of_warp) {
    const float through =
        gates_backward<most>(*of_token, divisors, dlogits + token * n.gates, by_token + token, inverse, n, attributes);
    if (thread == 0) of_norm[0] = through;
  }
  __syncthreads();
  const float through_norm = of_norm[0];
  const auto add_to_gradients = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (first + i * stride >= all) continue;
      alignas(widest_access) Element before[vector];
      copy_aligned<bytes>(before, raw[i]);
      float values[vector];
      load(row + first + i * stride, values);
#pragma unroll
      for (int j = 0; j < vector; ++j) values[j] = to_float(before[j]) + through_norm * values[j];
      store(gradient + first + i * stride, values);
    }
  };
  if constexpr (holds) {
    add_to_gradients(thread * vector);
  } else {
    for (int first = thread * vector; first < all; first += stride * at_once) {
      load_gradients(first);
      add_to_gradients(first);
    }
  }
}

constexpr int threads_of_base = 512;

/// A block sums one row of by_token [columns of base, tokens].
template <typename Gradient>
__global__ void hyper_base_kernel(const float* by_token, Gradient* dbase, std::int64_t tokens) {
  const int column = static_cast<int>(blockIdx.x);
  const float before = to_float(dbase[column]);
  float sum = 0;
#pragma unroll 4
  for (std::int64_t token = threadIdx.x; token < tokens; token += threads_of_base) sum += by_token[column * tokens + token];
  sum = block_sum(sum);
  if (threadIdx.x == 0) dbase[column] = from_float<Gradient>(before + sum);
}

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    hyper_gather_backward_kernel(const Element* x, const float* gates, const Element* dy, Element* dx, float* dgates,
                                 HyperSizes n) {
  const std::int64_t token = row_of_team(), first = token * n.streams * n.width;
  float sums[most] = {};
  if (token < n.tokens) {
    float read[most];
#pragma unroll
    for (int j = 0; j < most; ++j) read[j] = j < n.streams ? gates[token * n.gates + j] : 0.0F;
    each_vector<RowShape<vector, 0> >(static_cast<int>(n.width), [&](int column, int) {
      float gradient[vector], streams[most][vector], gradients[most][vector];
      load(dy + token * n.width + column, gradient);
      load_streams(n, x + first + column, streams);
      load_streams(n, dx + first + column, gradients);
#pragma unroll
      for (int j = 0; j < most; ++j) {
        if (j >= n.streams) continue;
#pragma unroll
        for (int i = 0; i < vector; ++i) {
          sums[j] += gradient[i] * streams[j][i];
          gradients[j][i] += read[j] * gradient[i];
        }
        store(dx + first + j * n.width + column, gradients[j]);
      }
    });
  }
  team_sums(sums);
  if (threadIdx.x != 0 || token >= n.tokens) return;
#pragma unroll
  for (int j = 0; j < most; ++j)
    if (j < n.streams) dgates[token * n.gates + j] += sums[j];
}

template <int most, typename Element>
struct MergedRow {
  const HyperSizes& n;
  const Element *x, *z;
  Element* y;
  float write[most], mix[most][most];

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    float streams[most][count], made[count];
    load_streams(n, x + column, streams);
    load(z + column, made);
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n.streams) continue;
      float sums[count];
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] = write[to] * made[i];
#pragma unroll
      for (int from = 0; from < most; ++from)
#pragma unroll
        for (int i = 0; i < count; ++i) sums[i] += mix[from][to] * streams[from][i];
      store(y + to * n.width + column, sums);
    }
  }
};

template <int most, typename Element>
struct HyperMerge {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  const float* gates;
  const Element* z;
  Element* y;

  TANDEM_DEVICE MergedRow<most, Element> row(std::int64_t token) const {
    const std::int64_t first = token * n.streams * n.width;
    MergedRow<most, Element> result{n, x + first, z + token * n.width, y + first, {}, {}};
    const float* const of_token = gates + token * n.gates;
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n.streams) continue;
      result.write[to] = of_token[n.write(to)];
#pragma unroll
      for (int from = 0; from < most; ++from)
        if (from < n.streams) result.mix[from][to] = of_token[n.mix(from, to)];
    }
    return result;
  }
};

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    hyper_merge_backward_kernel(const Element* x, const float* gates, const Element* z, const Element* dy, Element* dx,
                                Element* dz, float* dgates, HyperSizes n) {
  const std::int64_t token = row_of_team(), first = token * n.streams * n.width;
  const float* const of_token = gates + token * n.gates;
  float of_write[most] = {}, of_mix[most * most] = {};
  if (token < n.tokens) {
    each_vector<RowShape<vector, 0> >(static_cast<int>(n.width), [&](int column, int) {
      float made[vector], gradients[most][vector], through_half[vector] = {};
      load(z + token * n.width + column, made);
      load_streams(n, dy + first + column, gradients);
#pragma unroll
      for (int to = 0; to < most; ++to) {
        if (to >= n.streams) continue;
        const float write = of_token[n.write(to)];
#pragma unroll
        for (int i = 0; i < vector; ++i) {
          through_half[i] += write * gradients[to][i];
          of_write[to] += gradients[to][i] * made[i];
        }
      }
      store(dz + token * n.width + column, through_half);
#pragma unroll
      for (int from = 0; from < most; ++from) {
        if (from >= n.streams) continue;
        float in[vector], sums[vector] = {};
        load(x + first + from * n.width + column, in);
#pragma unroll
        for (int to = 0; to < most; ++to) {
          if (to >= n.streams) continue;
          const float mix = of_token[n.mix(from, to)];
#pragma unroll
          for (int i = 0; i < vector; ++i) {
            sums[i] += mix * gradients[to][i];
            of_mix[from * most + to] += gradients[to][i] * in[i];
          }
        }
        store(dx + first + from * n.width + column, sums);
      }
    });
  }
  team_sums(of_write);
  team_sums(of_mix);
  if (threadIdx.x != 0 || token >= n.tokens) return;
  float* const out = dgates + token * n.gates;
#pragma unroll
  for (int j = 0; j < most; ++j) {
    if (j >= n.streams) continue;
    out[j] = 0;
    out[n.write(j)] = of_write[j];
#pragma unroll
    for (int to = 0; to < most; ++to)
      if (to < n.streams) out[n.mix(j, to)] = of_mix[j * most + to];
  }
}

/// Blocks that read a row of all streams twice; few threads, so that many tokens' gates are under way at once.
dim3 threads_of_gates(const HyperSizes& n, int vector) {
  constexpr std::int64_t vectors_of_thread = 8;
  const std::int64_t wanted = divide_up(n.streams * n.width, vectors_of_thread * vector);
  return dim3(
      static_cast<unsigned>(std::clamp<std::int64_t>(round_up(wanted, lanes_of_warp), lanes_of_warp, most_threads_of_gates)));
}

const HyperAttributes& hyper_of(const OpAttributes& any) { return std::get<HyperAttributes>(any); }

/// Like with_row_teams, of teams that hold no rows: a thread has all streams at a place under way at once, which is enough.
template <typename Element, typename Visit>
void with_looping_teams(std::int64_t width, bool aligned, Visit visit) {
  constexpr int vector = vector_of<Element>, vectors_of_thread = 2;
  if (aligned) return visit(RowShape<vector, 0>{}, RowTeams(width / vector, vectors_of_thread));
  visit(RowShape<1, 0>{}, RowTeams(width, vectors_of_thread));
}

/// Whether the streams of a row are made of whole vectors, all operands beginning so.
template <typename Element>
bool have_vectors(const HyperSizes& n, std::initializer_list<DeviceTensor> tensors) {
  return n.width % vector_of<Element> == 0 && are_aligned(tensors, vector_of<Element>);
}

}  // namespace

void hyper_expand_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::hyper_expand, operands, any);
  expect_types(of_one_type(x, y), "hyper_expand's operands are of one type");
  const HyperSizes n(y.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, y = y]<typename Element>(Type<Element>) {
    launch_row_walk("hyper_expand", queue, n.tokens, n.width, have_vectors<Element>(n, {x, y}),
                    HyperExpand<Element>{n, x.template as<const Element>(), y.template as<Element>()});
  });
}

void hyper_expand_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, dx] = checked<2>(OpKind::hyper_expand_backward, operands, any);
  expect_types(of_one_type(dy, dx), "hyper_expand's operands are of one type");
  const HyperSizes n(dy.shape, hyper_of(any));
  with_type(dy.dtype, [&, dy = dy, dx = dx]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk("hyper_expand_backward", queue, n.tokens, n.width, have_vectors<Element>(n, {dy, dx}),
                      HyperGather<most, Element>{n, dy.template as<const Element>(), nullptr, dx.template as<Element>()});
    });
  });
}

void hyper_gates_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, gates] = checked<4>(OpKind::hyper_gates, operands, any);
  expect_types(of_one_type(x, base) && of_one_type(logits, gates) && gates.dtype == DType::f32, "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, logits = logits, base = base, gates = gates]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = have_vectors<Element>(n, {x});
      launch("hyper_gates", queue, {dim3(blocks_along_x(n.tokens)), threads_of_gates(n, aligned ? vector : 1)},
             aligned ? hyper_gates_kernel<most, vector, Element> : hyper_gates_kernel<most, 1, Element>,
             x.template as<const Element>(), logits.as<const float>(), base.template as<const Element>(), gates.as<float>(), n,
             hyper_of(any));
    });
  });
}

void hyper_gates_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, dgates, dlogits, dx, dbase] = checked<7>(OpKind::hyper_gates_backward, operands, any);
  expect_types(of_one_type(x, base, dx) && of_one_type(logits, dgates, dlogits) && logits.dtype == DType::f32,
               "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  auto* const by_token = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&, x = x, logits = logits, base = base, dgates = dgates, dlogits = dlogits,
                      dx = dx]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = have_vectors<Element>(n, {x, dx});
      const std::int64_t all = n.streams * n.width, bytes = all * static_cast<std::int64_t>(sizeof(Element));
      const bool holds = aligned && bytes <= most_bytes_held;
      const std::int64_t most_threads = holds ? GatesBackwardBlock<true>::most_threads : GatesBackwardBlock<false>::most_threads;
      const std::int64_t threads =
          divide_up(all, std::int64_t{GatesBackwardBlock<true>::vectors_of_thread} * (aligned ? vector : 1));
      launch(
          "hyper_gates_backward", queue,
          {dim3(blocks_along_x(n.tokens)),
           dim3(static_cast<unsigned>(std::clamp<std::int64_t>(round_up(threads, lanes_of_warp), lanes_of_warp, most_threads))),
           holds ? static_cast<std::size_t>(bytes) : 0},
          holds     ? hyper_gates_backward_kernel<most, vector, true, Element>
          : aligned ? hyper_gates_backward_kernel<most, vector, false, Element>
                    : hyper_gates_backward_kernel<most, 1, false, Element>,
          x.template as<const Element>(), logits.as<const float>(), base.template as<const Element>(), dgates.as<const float>(),
          dlogits.as<float>(), dx.template as<Element>(), by_token, n, hyper_of(any));
    });
  });
  const int columns = n.factors + n.gates;
  with_type(dbase.dtype, [&, dbase = dbase]<typename Gradient>(Type<Gradient>) {
    launch("hyper_gates_backward", queue, {dim3(static_cast<unsigned>(columns)), dim3(threads_of_base)},
           hyper_base_kernel<Gradient>, by_token, dbase.template as<Gradient>(), n.tokens);
  });
}

std::size_t hyper_gates_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const HyperSizes n(operands[0].shape, hyper_of(any));
  return static_cast<std::size_t>(n.tokens * (n.factors + n.gates)) * sizeof(float);
}

void hyper_gather_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, y] = checked<3>(OpKind::hyper_gather, operands, any);
  expect_types(of_one_type(x, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, y = y]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk(
          "hyper_gather", queue, n.tokens, n.width, have_vectors<Element>(n, {x, y}),
          HyperGather<most, Element>{n, x.template as<const Element>(), gates.as<const float>(), y.template as<Element>()});
    });
  });
}

void hyper_gather_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, dy, dx, dgates] = checked<5>(OpKind::hyper_gather_backward, operands, any);
  expect_types(of_one_type(x, dy, dx) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, dy = dy, dx = dx, dgates = dgates]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      const bool aligned = have_vectors<Element>(n, {x, dy, dx});
      with_looping_teams<Element>(n.width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
        launch("hyper_gather_backward", queue, {dim3(teams.blocks(n.tokens)), teams.block()},
               hyper_gather_backward_kernel<most, Shape::vector, Element>, x.template as<const Element>(),
               gates.as<const float>(), dy.template as<const Element>(), dx.template as<Element>(), dgates.as<float>(), n);
      });
    });
  });
}

void hyper_merge_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, y] = checked<4>(OpKind::hyper_merge, operands, any);
  expect_types(of_one_type(x, z, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, z = z, y = y]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk("hyper_merge", queue, n.tokens, n.width, have_vectors<Element>(n, {x, z, y}),
                      HyperMerge<most, Element>{n, x.template as<const Element>(), gates.as<const float>(),
                                                z.template as<const Element>(), y.template as<Element>()});
    });
  });
}

void hyper_merge_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, dy, dx, dz, dgates] = checked<7>(OpKind::hyper_merge_backward, operands, any);
  expect_types(of_one_type(x, z, dy, dx, dz) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype,
            [&, x = x, gates = gates, z = z, dy = dy, dx = dx, dz = dz, dgates = dgates]<typename Element>(Type<Element>) {
              with_streams(n, [&]<int most>(Streams<most>) {
                const bool aligned = have_vectors<Element>(n, {x, z, dy, dx, dz});
                with_looping_teams<Element>(n.width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
                  launch("hyper_merge_backward", queue, {dim3(teams.blocks(n.tokens)), teams.block()},
                         hyper_merge_backward_kernel<most, Shape::vector, Element>, x.template as<const Element>(),
                         gates.as<const float>(), z.template as<const Element>(), dy.template as<const Element>(),
                         dx.template as<Element>(), dz.template as<Element>(), dgates.as<float>(), n);
                });
              });
            });
}

}  // namespace tandem
