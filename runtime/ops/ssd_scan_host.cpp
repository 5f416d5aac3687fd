#include <cmath>
#include <vector>

#include "runtime/ops/ssd_scan.h"
#include "runtime/ops/ssd_sizes.h"

namespace tandem {
namespace {

using Doubles = std::vector<double>;

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

double dot(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double{a[i]} * b[i];
  return sum;
}

struct SsdInputs {
  const float *mixed, *projected, *parameters;
};

/// One chunk of one head of one sequence.
class SsdChunk {
 public:
  SsdChunk(const SsdSizes& sizes, const SsdInputs& inputs, std::int64_t b, std::int64_t h, std::int64_t c)
      : n(sizes), in(inputs), b_(b), h_(h), first(c * sizes.chunk), count(sizes.chunk_end(c) - first) {
    const double a = -std::exp(in.parameters[n.a_log(h)]);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      dt.push_back(softplus(in.projected[n.dt(first + i, b, h)] + in.parameters[n.dt_bias(h)]));
      sums.push_back(sum += a * dt.back());
    }
  }

  const SsdSizes& n;
  const SsdInputs in;
  const std::int64_t b_, h_, first, count;
  Doubles dt, sums;  ///< d_t, L_t

  const float* x(std::int64_t i) const { return in.mixed + n.x(first + i, b_, h_); }
  const float* keys(std::int64_t i) const { return in.mixed + n.b_of(first + i, b_, h_); }
  const float* queries(std::int64_t i) const { return in.mixed + n.c_of(first + i, b_, h_); }
  const float* z(std::int64_t i) const { return in.projected + n.z(first + i, b_, h_); }
  std::int64_t at(std::int64_t i) const { return n.y(first + i, b_, h_); }
  double skip() const { return in.parameters[n.skip(h_)]; }
  /// exp(L_t - L_u), or 0 where another document begins between them.
  double decay(std::int64_t t, std::int64_t u) const {
    return n.order.reaches_back(b_, first + t, t - u) ? std::exp(sums[index(t)] - sums[index(u)]) : 0.0;
  }
  double decay_to_end(std::int64_t u) const { return decay(count - 1, u); }
  double decay_from_start(std::int64_t t) const {
    return n.order.reaches_back(b_, first + t, t + 1) ? std::exp(sums[index(t)]) : 0.0;
  }
  /// The weight of x_u in y_t.
  double pair(std::int64_t t, std::int64_t u) const { return dot(queries(t), keys(u), n.state) * decay(t, u) * dt[index(u)]; }

  /// From the state before the chunk to the one after it.
  void pass(Doubles& state) const {
    for (double& element : state) element *= decay_from_start(count - 1);
    for (std::int64_t u = 0; u < count; ++u) {
      const double weight = decay_to_end(u) * dt[index(u)];
      for (std::int64_t p = 0; p < n.head_dim; ++p)
        for (std::int64_t k = 0; k < n.state; ++k) state[index(p * n.state + k)] += weight * x(u)[p] * keys(u)[k];
    }
  }
};

template <typename PerHead>
void for_each_head_of(const SsdSizes& n, PerHead per_head) {
  for (std::int64_t b = 0; b < n.batch; ++b)
    for (std::int64_t h = 0; h < n.heads; ++h) per_head(b, h);
}

void scan_chunk(const SsdChunk& chunk, const Doubles& state, float* out, float* y) {
  const SsdSizes& n = chunk.n;
  Doubles row(index(n.head_dim));
  for (std::int64_t t = 0; t < chunk.count; ++t) {
    for (std::int64_t p = 0; p < n.head_dim; ++p) {
      double from_state = 0;
      for (std::int64_t k = 0; k < n.state; ++k) from_state += state[index(p * n.state + k)] * chunk.queries(t)[k];
      row[index(p)] = chunk.decay_from_start(t) * from_state + chunk.skip() * chunk.x(t)[p];
    }
    for (std::int64_t u = 0; u <= t; ++u) {
      const double weight = chunk.pair(t, u);
      for (std::int64_t p = 0; p < n.head_dim; ++p) row[index(p)] += weight * chunk.x(u)[p];
    }
    for (std::int64_t p = 0; p < n.head_dim; ++p) {
      const double z = chunk.z(t)[p];
      y[chunk.at(t) + p] = static_cast<float>(row[index(p)]);
      out[chunk.at(t) + p] = static_cast<float>(row[index(p)] * z * sigmoid(z));
    }
  }
}

struct SsdGradients {
  const float *y, *dout;
  float *dmixed, *dprojected, *dparameters;
};

/// The gradients of one chunk, from that of the state after it to that of the state before it.
///
/// With e_u the sum of what y and the state after the chunk say of d_u x_u: dx_u = d_u e_u + D dy_u, and d_u gets x_u . e_u. A
/// sum L_t gets C_t . dC_t - B_t . dB_t, as it raises what position t reads and lowers what it writes; the last one also what the
/// state after the chunk holds times its gradient.
class SsdChunkBackward {
 public:
  SsdChunkBackward(const SsdChunk& chunk, const SsdGradients& gradients)
      : c(chunk), n(chunk.n), g(gradients), dy(index(chunk.count * chunk.n.head_dim)) {
    for (std::int64_t t = 0; t < c.count; ++t) through_gate(t);
  }

  void lower(const Doubles& before, const Doubles& after, Doubles& dstate) {
    Doubles dsums(index(c.count)), ddt(index(c.count));
    for (std::int64_t i = 0; i < c.count; ++i) dsums[index(i)] = queries_gradient(i, before) - keys_gradient(i, dstate);
    for (std::int64_t i = 0; i < c.count; ++i) ddt[index(i)] = input_gradient(i, dstate);
    for (std::size_t i = 0; i < dstate.size(); ++i) dsums.back() += dstate[i] * after[i];
    times(dsums, ddt);
    for (double& element : dstate) element *= c.decay_from_start(c.count - 1);
    for (std::int64_t t = 0; t < c.count; ++t)
      for (std::int64_t p = 0; p < n.head_dim; ++p)
        for (std::int64_t k = 0; k < n.state; ++k)
          dstate[index(p * n.state + k)] += c.decay_from_start(t) * dy_of(t, p) * c.queries(t)[k];
  }

 private:
  const SsdChunk& c;
  const SsdSizes& n;
  const SsdGradients& g;
  Doubles dy;

  double dy_of(std::int64_t t, std::int64_t p) const { return dy[index(t * n.head_dim + p)]; }
  double dy_dot_x(std::int64_t t, std::int64_t u) const {
    double sum = 0;
    for (std::int64_t p = 0; p < n.head_dim; ++p) sum += dy_of(t, p) * c.x(u)[p];
    return sum;
  }

  void through_gate(std::int64_t t) {
    for (std::int64_t p = 0; p < n.head_dim; ++p) {
      const double z = c.z(t)[p], s = sigmoid(z), dout = g.dout[c.at(t) + p];
      dy[index(t * n.head_dim + p)] = dout * z * s;
      g.dprojected[n.z(c.first + t, c.b_, c.h_) + p] = static_cast<float>(dout * g.y[c.at(t) + p] * s * (1 + z * (1 - s)));
    }
  }

  /// Adds dC_t to that of the group; returns C_t . dC_t.
  double queries_gradient(std::int64_t t, const Doubles& before) {
    Doubles d(index(n.state));
    for (std::int64_t u = 0; u <= t; ++u) {
      const double weight = dy_dot_x(t, u) * c.decay(t, u) * c.dt[index(u)];
      for (std::int64_t k = 0; k < n.state; ++k) d[index(k)] += weight * c.keys(u)[k];
    }
    for (std::int64_t p = 0; p < n.head_dim; ++p)
      for (std::int64_t k = 0; k < n.state; ++k)
        d[index(k)] += c.decay_from_start(t) * dy_of(t, p) * before[index(p * n.state + k)];
    return add(d, g.dmixed + n.c_of(c.first + t, c.b_, c.h_), c.queries(t));
  }

  /// Adds dB_u to that of the group; returns B_u . dB_u.
  double keys_gradient(std::int64_t u, const Doubles& dstate) {
    Doubles d(index(n.state));
    for (std::int64_t t = u; t < c.count; ++t) {
      const double weight = dy_dot_x(t, u) * c.decay(t, u) * c.dt[index(u)];
      for (std::int64_t k = 0; k < n.state; ++k) d[index(k)] += weight * c.queries(t)[k];
    }
    for (std::int64_t p = 0; p < n.head_dim; ++p)
      for (std::int64_t k = 0; k < n.state; ++k)
        d[index(k)] += c.decay_to_end(u) * c.dt[index(u)] * c.x(u)[p] * dstate[index(p * n.state + k)];
    return add(d, g.dmixed + n.b_of(c.first + u, c.b_, c.h_), c.keys(u));
  }

  double add(const Doubles& d, float* into, const float* of) const {
    double product = 0;
    for (std::int64_t k = 0; k < n.state; ++k) {
      into[k] += static_cast<float>(d[index(k)]);
      product += d[index(k)] * of[k];
    }
    return product;
  }

  /// Writes dx_u, adds to that of D; returns what d_u gets.
  double input_gradient(std::int64_t u, const Doubles& dstate) {
    Doubles e(index(n.head_dim));
    for (std::int64_t t = u; t < c.count; ++t) {
      const double weight = dot(c.queries(t), c.keys(u), n.state) * c.decay(t, u);
      for (std::int64_t p = 0; p < n.head_dim; ++p) e[index(p)] += weight * dy_of(t, p);
    }
    double product = 0, skip = 0;
    for (std::int64_t p = 0; p < n.head_dim; ++p) {
      for (std::int64_t k = 0; k < n.state; ++k) e[index(p)] += c.decay_to_end(u) * dstate[index(p * n.state + k)] * c.keys(u)[k];
      g.dmixed[n.x(c.first + u, c.b_, c.h_) + p] = static_cast<float>(c.dt[index(u)] * e[index(p)] + c.skip() * dy_of(u, p));
      product += e[index(p)] * c.x(u)[p];
      skip += dy_of(u, p) * c.x(u)[p];
    }
    g.dparameters[n.skip(c.h_)] += static_cast<float>(skip);
    return product;
  }

  /// From the gradients of the sums and of d_t to those of what they are made of.
  void times(const Doubles& dsums, const Doubles& ddt) {
    const double a = -std::exp(c.in.parameters[n.a_log(c.h_)]);
    double da = 0, da_log = 0, dbias = 0;
    for (std::int64_t t = c.count - 1; t >= 0; --t) {
      da += dsums[index(t)];
      da_log += da * c.dt[index(t)] * a;
      const std::int64_t at = n.dt(c.first + t, c.b_, c.h_);
      const double raw = c.in.projected[at] + c.in.parameters[n.dt_bias(c.h_)];
      const double draw = (ddt[index(t)] + da * a) * sigmoid(raw);
      g.dprojected[at] = static_cast<float>(draw);
      dbias += draw;
    }
    g.dparameters[n.a_log(c.h_)] += static_cast<float>(da_log);
    g.dparameters[n.dt_bias(c.h_)] += static_cast<float>(dbias);
  }
};

}  // namespace

void ssd_scan_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out, y] = unpack<5>(operands, "ssd_scan");
  const auto& attributes = std::get<SsdAttributes>(any);
  SsdSizes n(mixed.shape, projected.shape, parameters.shape, out.shape, attributes);
  const HostTokenOrder order(attributes.documents, n.positions, n.batch);
  n.order = order.get();
  const SsdInputs inputs{mixed.f32(), projected.f32(), parameters.f32()};
  for_each_head_of(n, [&, out = out, y = y](std::int64_t b, std::int64_t h) {
    Doubles state(index(n.head_dim * n.state));
    for (std::int64_t c = 0; c < n.chunks(); ++c) {
      const SsdChunk chunk(n, inputs, b, h, c);
      scan_chunk(chunk, state, out.f32(), y.f32());
      chunk.pass(state);
    }
  });
}

void ssd_scan_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, y, dout, dmixed, dprojected, dparameters] = unpack<8>(operands, "ssd_scan_backward");
  const auto& attributes = std::get<SsdAttributes>(any);
  SsdSizes n(mixed.shape, projected.shape, parameters.shape, y.shape, attributes);
  const HostTokenOrder order(attributes.documents, n.positions, n.batch);
  n.order = order.get();
  const SsdInputs inputs{mixed.f32(), projected.f32(), parameters.f32()};
  const SsdGradients gradients{y.f32(), dout.f32(), dmixed.f32(), dprojected.f32(), dparameters.f32()};
  std::fill_n(dmixed.f32(), dmixed.shape.elements(), 0.0F);  // heads of a group add up
  for_each_head_of(n, [&](std::int64_t b, std::int64_t h) {
    std::vector<Doubles> states{Doubles(index(n.head_dim * n.state))};  // before each chunk, and after the last
    for (std::int64_t c = 0; c < n.chunks(); ++c) {
      states.push_back(states.back());
      SsdChunk(n, inputs, b, h, c).pass(states.back());
    }
    Doubles dstate(index(n.head_dim * n.state));
    for (std::int64_t c = n.chunks() - 1; c >= 0; --c)
      SsdChunkBackward(SsdChunk(n, inputs, b, h, c), gradients).lower(states[index(c)], states[index(c + 1)], dstate);
  });
}

}  // namespace tandem
