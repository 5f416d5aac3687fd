#include "runtime/ops/lightning_attention.h"

#include <cmath>
#include <initializer_list>
#include <vector>

#include "runtime/ops/lightning_sizes.h"

namespace tandem {
namespace {

/// The tensors between the kernels, in bytes, and the products' FLOPs; over all positions, batch and heads.
struct LightningWork {
  Bytes rows;      ///< one of q, k, v, the output and their gradients
  Bytes states;    ///< before each chunk, or what each adds
  Flops of_pairs;  ///< a product of a position with those of its chunk that it sees
  Flops of_states;
  DType type;

  LightningWork(const LightningSizes& n, DType dtype) : type(dtype) {
    const std::int64_t positions = n.positions * n.batch;
    rows = positions * n.inner() * size_of(dtype);
    states = n.batch * n.chunks() * n.heads * n.state() * size_of(DType::f32);
    of_pairs = static_cast<double>(positions * n.inner()) * static_cast<double>(n.chunk + 1);
    of_states = 2 * static_cast<double>(positions * n.heads) * static_cast<double>(n.state());
  }

  OpCost part(Flops flops, std::initializer_list<Bytes> moved) const {
    OpCost cost{.flops = flops, .math = type};
    for (const Bytes bytes : moved) cost.bytes += bytes;
    return cost;
  }
  OpCost chunk_states() const { return part(of_states, {2 * rows, states}); }
  OpCost pass_states() const { return part(0, {2 * states}); }
};

OpCost sum_of_lightning(const std::vector<OpCost>& parts) {
  OpCost sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.flops += parts[i].flops;
    sum.bytes += parts[i].bytes;
  }
  return sum;
}

using LightningNumbers = std::vector<double>;

std::size_t lightning_index(std::int64_t i) { return static_cast<std::size_t>(i); }

template <typename A, typename B>
double lightning_dot(const A* a, const B* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}
template <typename Number>
void lightning_add(double* to, double factor, const Number* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * double{from[i]};
}

/// One chunk of one head of one sequence.
class LightningChunk {
 public:
  LightningChunk(const LightningSizes& sizes, const float* mixed, std::int64_t batch, std::int64_t head, std::int64_t c)
      : n(sizes),
        in(mixed),
        b(batch),
        h(head),
        first(c * sizes.chunk),
        count(sizes.chunk_end(c) - first),
        rate(double{sizes.decay} * std::exp2(sizes.exponent(head))) {}

  const LightningSizes& n;
  const float* const in;
  const std::int64_t b, h, first, count;
  const double rate;

  const float* q(std::int64_t i) const { return in + n.q(first + i, b, h); }
  const float* k(std::int64_t i) const { return in + n.k(first + i, b, h); }
  const float* v(std::int64_t i) const { return in + n.v(first + i, b, h); }
  std::int64_t at(std::int64_t i) const { return n.out(first + i, b, h); }
  /// What is left after so many positions.
  double fade(std::int64_t positions) const { return std::exp(-rate * static_cast<double>(positions)); }
  double fade_to_end(std::int64_t i) const { return fade(count - 1 - i); }

  void outputs(const LightningNumbers& state, float* out) const {
    LightningNumbers row(lightning_index(n.head_dim));
    for (std::int64_t t = 0; t < count; ++t) {
      std::fill(row.begin(), row.end(), 0.0);
      for (std::int64_t e = 0; e < n.head_dim; ++e)
        lightning_add(row.data(), fade(t + 1) * q(t)[e], state.data() + e * n.head_dim, n.head_dim);
      for (std::int64_t u = 0; u <= t; ++u)
        lightning_add(row.data(), lightning_dot(q(t), k(u), n.head_dim) * fade(t - u), v(u), n.head_dim);
      for (std::int64_t p = 0; p < n.head_dim; ++p) out[at(t) + p] = static_cast<float>(row[lightning_index(p)]);
    }
  }

  /// From the state before the chunk to the one after it.
  void pass(LightningNumbers& state) const {
    for (double& element : state) element *= fade(count);
    for (std::int64_t u = 0; u < count; ++u)
      for (std::int64_t e = 0; e < n.head_dim; ++e)
        lightning_add(state.data() + e * n.head_dim, fade_to_end(u) * k(u)[e], v(u), n.head_dim);
  }

  /// `state`: before the chunk. `dstate`: the gradient of the state after it, then of that before it.
  void backward(const LightningNumbers& state, LightningNumbers& dstate, const float* dout, float* dmixed) const {
    const std::int64_t d = n.head_dim;
    LightningNumbers dq(lightning_index(d)), dk(lightning_index(d)), dv(lightning_index(d));
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t e = 0; e < d; ++e) {
        const double* const row = dstate.data() + e * d;
        dq[lightning_index(e)] = fade(i + 1) * lightning_dot(state.data() + e * d, dout + at(i), d);
        dk[lightning_index(e)] = fade_to_end(i) * lightning_dot(row, v(i), d);
      }
      std::fill(dv.begin(), dv.end(), 0.0);
      for (std::int64_t e = 0; e < d; ++e) lightning_add(dv.data(), fade_to_end(i) * k(i)[e], dstate.data() + e * d, d);
      for (std::int64_t u = 0; u <= i; ++u) lightning_add(dq.data(), lightning_dot(dout + at(i), v(u), d) * fade(i - u), k(u), d);
      for (std::int64_t t = i; t < count; ++t) {
        lightning_add(dk.data(), lightning_dot(dout + at(t), v(i), d) * fade(t - i), q(t), d);
        lightning_add(dv.data(), lightning_dot(q(t), k(i), d) * fade(t - i), dout + at(t), d);
      }
      for (std::int64_t e = 0; e < d; ++e) {
        dmixed[n.q(first + i, b, h) + e] = static_cast<float>(dq[lightning_index(e)]);
        dmixed[n.k(first + i, b, h) + e] = static_cast<float>(dk[lightning_index(e)]);
        dmixed[n.v(first + i, b, h) + e] = static_cast<float>(dv[lightning_index(e)]);
      }
    }
    for (double& element : dstate) element *= fade(count);
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t e = 0; e < d; ++e) lightning_add(dstate.data() + e * d, fade(t + 1) * q(t)[e], dout + at(t), d);
  }
};

}  // namespace

std::vector<OpCost> lightning_attention_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, out] = unpack<2>(operands, "lightning_attention");
  const LightningSizes n(mixed.shape, out.shape, std::get<LightningAttributes>(any));
  const LightningWork w(n, mixed.dtype);
  return {w.part(2 * w.of_pairs, {4 * w.rows}),                                             // within the chunks
          w.chunk_states(), w.pass_states(), w.part(w.of_states, {3 * w.rows, w.states})};  // and from the states
}

OpCost lightning_attention_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_lightning(lightning_attention_parts(operands, any));
}

std::vector<OpCost> lightning_attention_backward_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, dout, dmixed] = unpack<3>(operands, "lightning_attention_backward");
  expect_shapes(dmixed.shape == mixed.shape, "lightning_attention's gradient is shaped as what it belongs to");
  const LightningSizes n(mixed.shape, dout.shape, std::get<LightningAttributes>(any));
  const LightningWork w(n, mixed.dtype);
  return {w.chunk_states(),
          w.pass_states(),
          w.part(6 * w.of_pairs, {7 * w.rows}),                  // of q, k and v within the chunks
          w.part(w.of_states, {2 * w.rows, w.states}),           // of the states, from the outputs of each chunk
          w.pass_states(),                                       // passed back from chunk to chunk
          w.part(3 * w.of_states, {9 * w.rows, 2 * w.states})};  // of q, k and v from the states
}

OpCost lightning_attention_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_lightning(lightning_attention_backward_parts(operands, any));
}

void lightning_attention_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, out] = unpack<2>(operands, "lightning_attention");
  const LightningSizes n(mixed.shape, out.shape, std::get<LightningAttributes>(any));
  for (std::int64_t b = 0; b < n.batch; ++b) {
    for (std::int64_t h = 0; h < n.heads; ++h) {
      LightningNumbers state(lightning_index(n.state()));
      for (std::int64_t c = 0; c < n.chunks(); ++c) {
        const LightningChunk chunk(n, mixed.f32(), b, h, c);
        chunk.outputs(state, out.f32());
        chunk.pass(state);
      }
    }
  }
}

void lightning_attention_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, dout, dmixed] = unpack<3>(operands, "lightning_attention_backward");
  const LightningSizes n(mixed.shape, dout.shape, std::get<LightningAttributes>(any));
  for (std::int64_t b = 0; b < n.batch; ++b) {
    for (std::int64_t h = 0; h < n.heads; ++h) {
      std::vector<LightningNumbers> states{LightningNumbers(lightning_index(n.state()))};  // before each chunk
      for (std::int64_t c = 0; c + 1 < n.chunks(); ++c) {
        states.push_back(states.back());
        LightningChunk(n, mixed.f32(), b, h, c).pass(states.back());
      }
      LightningNumbers dstate(lightning_index(n.state()));
      for (std::int64_t c = n.chunks() - 1; c >= 0; --c)
        LightningChunk(n, mixed.f32(), b, h, c).backward(states[lightning_index(c)], dstate, dout.f32(), dmixed.f32());
    }
  }
}

}  // namespace tandem
