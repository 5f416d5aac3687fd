#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/ops/delta_rule.h"
#include "runtime/ops/delta_sizes.h"

namespace tandem {
namespace {

using DeltaNumbers = std::vector<double>;

std::size_t delta_index(std::int64_t i) { return static_cast<std::size_t>(i); }
double delta_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double delta_softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

/// Rows of doubles.
class DeltaRows {
 public:
  DeltaRows(std::int64_t rows, std::int64_t columns) : columns_(columns), values_(delta_index(rows * columns)) {}
  double* operator[](std::int64_t row) { return values_.data() + row * columns_; }
  const double* operator[](std::int64_t row) const { return values_.data() + row * columns_; }

 private:
  std::int64_t columns_;
  DeltaNumbers values_;
};

double delta_dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
void delta_add(double* to, double factor, const double* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

struct DeltaInputs {
  const float *mixed, *projected, *parameters;
};

/// One chunk of one value head of one sequence: queries and keys of length one, and what the rule makes of the values.
class DeltaChunk {
 public:
  DeltaChunk(const DeltaSizes& sizes, const DeltaInputs& inputs, std::int64_t batch, std::int64_t head, std::int64_t c)
      : n(sizes),
        in(inputs),
        b(batch),
        h(head),
        first(c * sizes.chunk),
        count(sizes.chunk_end(c) - first),
        q(count, n.key_dim),
        k(count, n.key_dim),
        v(count, n.value_dim),
        u(count, n.value_dim),
        from_state(count, n.value_dim) {
    const double scale = 1 / std::sqrt(static_cast<double>(n.key_dim));
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t t = first + i;
      q_length.push_back(to_length(in.mixed + n.q(t, b, h), q[i], scale));
      k_length.push_back(to_length(in.mixed + n.k(t, b, h), k[i], 1));
      std::copy_n(in.mixed + n.v(t, b, h), n.value_dim, v[i]);
      writing.push_back(delta_sigmoid(in.projected[n.gate(t, b, h)]));
      decays.push_back(-std::exp(in.parameters[n.a_log(h)]) * delta_softplus(raw_step(i)));
      sums.push_back(sum += decays.back());
    }
  }

  const DeltaSizes& n;
  const DeltaInputs in;
  const std::int64_t b, h, first, count;
  DeltaRows q, k, v;
  DeltaRows u;           ///< U, once solved
  DeltaRows from_state;  ///< S^T k_t
  DeltaNumbers q_length, k_length, writing, decays, sums;

  double raw_step(std::int64_t i) const { return in.projected[n.step(first + i, b, h)] + in.parameters[n.dt_bias(h)]; }
  /// exp(G_t - G_s), or 0 where another document begins between them.
  double decay(std::int64_t t, std::int64_t s) const {
    return n.order.reaches_back(b, first + t, t - s) ? std::exp(sums[delta_index(t)] - sums[delta_index(s)]) : 0.0;
  }
  double decay_to_end(std::int64_t t) const { return decay(count - 1, t); }
  double decay_from_start(std::int64_t t) const {
    return n.order.reaches_back(b, first + t, t + 1) ? std::exp(sums[delta_index(t)]) : 0.0;
  }
  double a(std::int64_t t, std::int64_t s) const {
    return writing[delta_index(t)] * delta_dot(k[t], k[s], n.key_dim) * decay(t, s);
  }
  double pair(std::int64_t t, std::int64_t s) const { return delta_dot(q[t], k[s], n.key_dim) * decay(t, s); }

  /// (I + A) U = W by forward substitution.
  void solve(const DeltaRows& state) {
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t e = 0; e < n.key_dim; ++e) delta_add(from_state[t], k[t][e], state[e], n.value_dim);
      for (std::int64_t p = 0; p < n.value_dim; ++p)
        u[t][p] = writing[delta_index(t)] * (v[t][p] - decay_from_start(t) * from_state[t][p]);
      for (std::int64_t s = 0; s < t; ++s) delta_add(u[t], -a(t, s), u[s], n.value_dim);
    }
  }

  void outputs(const DeltaRows& state, float* out) const {
    for (std::int64_t t = 0; t < count; ++t) {
      DeltaNumbers row(delta_index(n.value_dim));
      for (std::int64_t e = 0; e < n.key_dim; ++e) delta_add(row.data(), decay_from_start(t) * q[t][e], state[e], n.value_dim);
      for (std::int64_t s = 0; s <= t; ++s) delta_add(row.data(), pair(t, s), u[s], n.value_dim);
      for (std::int64_t p = 0; p < n.value_dim; ++p) out[n.out(first + t, b, h) + p] = static_cast<float>(row[delta_index(p)]);
    }
  }

  /// From the state before the chunk to the one after it.
  void pass(DeltaRows& state) const {
    for (std::int64_t e = 0; e < n.key_dim; ++e) {
      for (std::int64_t p = 0; p < n.value_dim; ++p) state[e][p] *= decay_from_start(count - 1);
      for (std::int64_t t = 0; t < count; ++t) delta_add(state[e], decay_to_end(t) * k[t][e], u[t], n.value_dim);
    }
  }

 private:
  /// Returns the inverse of the length.
  double to_length(const float* x, double* to, double scale) const {
    double squares = delta_rule_epsilon;
    for (std::int64_t e = 0; e < n.key_dim; ++e) squares += double{x[e]} * x[e];
    for (std::int64_t e = 0; e < n.key_dim; ++e) to[e] = scale * x[e] / std::sqrt(squares);
    return 1 / std::sqrt(squares);
  }
};

struct DeltaGradients {
  const float* dout;
  float *dmixed, *dprojected, *dparameters;
};

/// The gradients of one chunk, from that of the state after it to that of the state before it.
class DeltaChunkBackward {
 public:
  DeltaChunkBackward(const DeltaChunk& chunk, const DeltaGradients& gradients)
      : c(chunk),
        n(chunk.n),
        g(gradients),
        dq(c.count, n.key_dim),
        dk(c.count, n.key_dim),
        dr(c.count, n.value_dim),
        dout(c.count, n.value_dim),
        dwriting(delta_index(c.count)),
        dsums(delta_index(c.count)) {
    for (std::int64_t t = 0; t < c.count; ++t) std::copy_n(g.dout + n.out(c.first + t, c.b, c.h), n.value_dim, dout[t]);
  }

  /// `state`: before the chunk. `dstate`: of the state after it, then of that.
  void lower(const DeltaRows& state, DeltaRows& dstate) {
    of_state_after(state, dstate);
    through_outputs(state, dstate);
    through_inverse();
    through_start(state, dstate);
    write();
  }

 private:
  const DeltaChunk& c;
  const DeltaSizes& n;
  const DeltaGradients& g;
  DeltaRows dq, dk;
  DeltaRows dr;  ///< of U, then of W
  DeltaRows dout;
  DeltaNumbers dwriting, dsums;

  double& of_sum(std::int64_t t) { return dsums[delta_index(t)]; }

  /// S' = exp(G_C) S + sum_t exp(G_C - G_t) k_t U_t^T. Leaves in `dstate` what S gets of it.
  void of_state_after(const DeltaRows& state, DeltaRows& dstate) {
    const std::int64_t last = c.count - 1;
    for (std::int64_t t = 0; t < c.count; ++t) {
      double moved = 0;
      for (std::int64_t e = 0; e < n.key_dim; ++e) {
        const double of_key = delta_dot(dstate[e], c.u[t], n.value_dim);
        dk[t][e] += c.decay_to_end(t) * of_key;
        moved += c.decay_to_end(t) * c.k[t][e] * of_key;
        delta_add(dr[t], c.decay_to_end(t) * c.k[t][e], dstate[e], n.value_dim);
      }
      of_sum(last) += moved;
      of_sum(t) -= moved;
    }
    for (std::int64_t e = 0; e < n.key_dim; ++e) {
      of_sum(last) += c.decay_from_start(last) * delta_dot(dstate[e], state[e], n.value_dim);
      for (std::int64_t p = 0; p < n.value_dim; ++p) dstate[e][p] *= c.decay_from_start(last);
    }
  }

  void through_outputs(const DeltaRows& state, DeltaRows& dstate) {
    for (std::int64_t t = 0; t < c.count; ++t) {
      const double decay = c.decay_from_start(t);
      for (std::int64_t e = 0; e < n.key_dim; ++e) {
        const double of_query = decay * delta_dot(state[e], dout[t], n.value_dim);
        dq[t][e] += of_query;
        of_sum(t) += of_query * c.q[t][e];
        delta_add(dstate[e], decay * c.q[t][e], dout[t], n.value_dim);
      }
      for (std::int64_t s = 0; s <= t; ++s) {
        const double dpair = delta_dot(dout[t], c.u[s], n.value_dim), faded = dpair * c.decay(t, s);
        delta_add(dr[s], c.pair(t, s), dout[t], n.value_dim);
        delta_add(dq[t], faded, c.k[s], n.key_dim);
        delta_add(dk[s], faded, c.q[t], n.key_dim);
        of_sum(t) += dpair * c.pair(t, s);
        of_sum(s) -= dpair * c.pair(t, s);
      }
    }
  }

  /// From the gradient of U to that of W = (I + A) U, and of A.
  void through_inverse() {
    for (std::int64_t t = c.count - 1; t >= 0; --t)
      for (std::int64_t s = 0; s < t; ++s) delta_add(dr[s], -c.a(t, s), dr[t], n.value_dim);
    for (std::int64_t t = 0; t < c.count; ++t)
      for (std::int64_t s = 0; s < t; ++s) {
        const double da = -delta_dot(dr[t], c.u[s], n.value_dim), keys = delta_dot(c.k[t], c.k[s], n.key_dim) * c.decay(t, s);
        const double faded = da * c.writing[delta_index(t)] * c.decay(t, s);
        dwriting[delta_index(t)] += da * keys;
        delta_add(dk[t], faded, c.k[s], n.key_dim);
        delta_add(dk[s], faded, c.k[t], n.key_dim);
        of_sum(t) += da * c.a(t, s);
        of_sum(s) -= da * c.a(t, s);
      }
  }

  /// Row t of W is w_t (v_t - exp(G_t) S^T k_t).
  void through_start(const DeltaRows& state, DeltaRows& dstate) {
    for (std::int64_t t = 0; t < c.count; ++t) {
      const double decay = c.decay_from_start(t), w = c.writing[delta_index(t)];
      const double of_state = delta_dot(dr[t], c.from_state[t], n.value_dim);
      dwriting[delta_index(t)] += delta_dot(dr[t], c.v[t], n.value_dim) - decay * of_state;
      of_sum(t) -= w * decay * of_state;
      for (std::int64_t e = 0; e < n.key_dim; ++e) {
        dk[t][e] -= w * decay * delta_dot(state[e], dr[t], n.value_dim);
        delta_add(dstate[e], -w * decay * c.k[t][e], dr[t], n.value_dim);
      }
    }
  }

  /// dx = (dy - y (y . dy)) / length for y = x / length, here with scaled y.
  void add_before_length(const double* y, double* dy, double inverse_length, double scale, float* into) const {
    const double projection = delta_dot(y, dy, n.key_dim);
    for (std::int64_t e = 0; e < n.key_dim; ++e)
      into[e] += static_cast<float>(inverse_length * (scale * dy[e] - y[e] / scale * projection));
  }

  void write() {
    const double a = -std::exp(c.in.parameters[n.a_log(c.h)]), scale = 1 / std::sqrt(static_cast<double>(n.key_dim));
    double of_decay = 0, da_log = 0, dbias = 0;
    for (std::int64_t t = c.count - 1; t >= 0; --t) {
      const std::int64_t at = c.first + t;
      const double w = c.writing[delta_index(t)];
      add_before_length(c.q[t], dq[t], c.q_length[delta_index(t)], scale, g.dmixed + n.q(at, c.b, c.h));
      add_before_length(c.k[t], dk[t], c.k_length[delta_index(t)], 1, g.dmixed + n.k(at, c.b, c.h));
      for (std::int64_t p = 0; p < n.value_dim; ++p) g.dmixed[n.v(at, c.b, c.h) + p] = static_cast<float>(w * dr[t][p]);
      g.dprojected[n.gate(at, c.b, c.h)] = static_cast<float>(dwriting[delta_index(t)] * w * (1 - w));
      of_decay += dsums[delta_index(t)];
      da_log += of_decay * c.decays[delta_index(t)];
      const double draw = of_decay * a * delta_sigmoid(c.raw_step(t));
      g.dprojected[n.step(at, c.b, c.h)] = static_cast<float>(draw);
      dbias += draw;
    }
    g.dparameters[n.a_log(c.h)] += static_cast<float>(da_log);
    g.dparameters[n.dt_bias(c.h)] += static_cast<float>(dbias);
  }
};

}  // namespace

void delta_rule_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out] = unpack<4>(operands, "delta_rule");
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  DeltaSizes n(mixed.shape, projected.shape, parameters.shape, out.shape, attributes);
  const HostTokenOrder order(attributes.documents, n.positions, n.batch);
  n.order = order.get();
  const DeltaInputs inputs{mixed.f32(), projected.f32(), parameters.f32()};
  for (std::int64_t b = 0; b < n.batch; ++b) {
    for (std::int64_t h = 0; h < n.heads; ++h) {
      DeltaRows state(n.key_dim, n.value_dim);
      for (std::int64_t c = 0; c < n.chunks(); ++c) {
        DeltaChunk chunk(n, inputs, b, h, c);
        chunk.solve(state);
        chunk.outputs(state, out.f32());
        chunk.pass(state);
      }
    }
  }
}

void delta_rule_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, dout, dmixed, dprojected, dparameters] = unpack<7>(operands, "delta_rule_backward");
  const auto& attributes = std::get<DeltaRuleAttributes>(any);
  DeltaSizes n(mixed.shape, projected.shape, parameters.shape, dout.shape, attributes);
  const HostTokenOrder order(attributes.documents, n.positions, n.batch);
  n.order = order.get();
  const DeltaInputs inputs{mixed.f32(), projected.f32(), parameters.f32()};
  const DeltaGradients gradients{dout.f32(), dmixed.f32(), dprojected.f32(), dparameters.f32()};
  std::fill_n(dmixed.f32(), dmixed.shape.elements(), 0.0F);  // value heads of a key head add up
  for (std::int64_t b = 0; b < n.batch; ++b) {
    for (std::int64_t h = 0; h < n.heads; ++h) {
      std::vector<DeltaRows> states{DeltaRows(n.key_dim, n.value_dim)};  // before each chunk
      std::vector<DeltaChunk> chunks;
      chunks.reserve(delta_index(n.chunks()));
      for (std::int64_t c = 0; c < n.chunks(); ++c) {
        chunks.emplace_back(n, inputs, b, h, c).solve(states.back());
        states.push_back(states.back());
        chunks.back().pass(states.back());
      }
      DeltaRows dstate(n.key_dim, n.value_dim);
      for (std::int64_t c = n.chunks() - 1; c >= 0; --c)
        DeltaChunkBackward(chunks[delta_index(c)], gradients).lower(states[delta_index(c)], dstate);
    }
  }
}

}  // namespace tandem
