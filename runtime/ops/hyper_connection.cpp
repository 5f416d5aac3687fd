#include "runtime/ops/hyper_connection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/ops/hyper_sizes.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

const HyperAttributes& hyper_of(const OpAttributes& any) { return std::get<HyperAttributes>(any); }

HyperSizes hyper_sizes(const Shape& streams, const Shape& one, const OpAttributes& any) {
  const HyperSizes n(streams, hyper_of(any));
  expect_shapes(rows_of(one) == n.tokens && columns_of(one) == n.width, "a stream is as wide as a row of it");
  return n;
}

HyperSizes hyper_sizes_with_gates(const Shape& x, const Shape& gates, const OpAttributes& any) {
  const HyperSizes n(x, hyper_of(any));
  expect_shapes(gates == Shape(n.tokens, n.gates), "hyper-connections have gates [T,g]");
  return n;
}

HyperSizes sizes_of_gates(const Shape& x, const Shape& logits, const Shape& base, const Shape& gates, const OpAttributes& any) {
  const HyperSizes n = hyper_sizes_with_gates(x, gates, any);
  expect_shapes(logits == gates && base.elements() == n.factors + n.gates, "each gate has a logit and a bias");
  return n;
}

/// Of a token: 1 / the root mean square of all its streams.
double inverse_root_mean_square(const HyperSizes& n, const float* x, const OpAttributes& any) {
  const std::int64_t all = n.streams * n.width;
  const double mean = sum_of(all, [=](auto i) { return double{x[i]} * x[i]; }) / static_cast<double>(all);
  return 1 / std::sqrt(mean + hyper_of(any).epsilon_of_norm);
}

using GateValues = std::array<double, HyperSizes::most_streams*(HyperSizes::most_streams + 2)>;

}  // namespace

OpCost hyper_expand_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "hyper_expand");
  hyper_sizes(y.shape, x.shape, any);
  return memory_cost(bytes_of(x, y));
}

void hyper_expand_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "hyper_expand");
  const HyperSizes n = hyper_sizes(y.shape, x.shape, any);
  for (std::int64_t row = 0; row < n.tokens * n.streams; ++row)
    std::copy_n(x.f32() + row / n.streams * n.width, n.width, y.f32() + row * n.width);
}

OpCost hyper_expand_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [dy, dx] = unpack<2>(operands, "hyper_expand_backward");
  hyper_sizes(dy.shape, dx.shape, any);
  return memory_cost(bytes_of(dy, dx));
}

void hyper_expand_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [dy, dx] = unpack<2>(operands, "hyper_expand_backward");
  const HyperSizes n = hyper_sizes(dy.shape, dx.shape, any);
  for (std::int64_t i = 0; i < n.tokens * n.width; ++i) {
    const float* const first = dy.f32() + i / n.width * n.streams * n.width + i % n.width;
    double sum = 0;
    for (int j = 0; j < n.streams; ++j) sum += first[j * n.width];
    dx.f32()[i] = static_cast<float>(sum);
  }
}

OpCost hyper_gates_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, logits, base, gates] = unpack<4>(operands, "hyper_gates");
  sizes_of_gates(x.shape, logits.shape, base.shape, gates.shape, any);
  return memory_cost(bytes_of(x, logits, base, gates));
}

void hyper_gates_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, gates] = unpack<4>(operands, "hyper_gates");
  const HyperSizes n = sizes_of_gates(x.shape, logits.shape, base.shape, gates.shape, any);
  const float* const b = base.f32();
  HyperGates<double> of_token(n, hyper_of(any).iterations, hyper_of(any).epsilon);
  for (std::int64_t token = 0; token < n.tokens; ++token) {
    const double inverse = inverse_root_mean_square(n, x.f32() + token * n.streams * n.width, any);
    const float* const z = logits.f32() + token * n.gates;
    GateValues values{};
    of_token.forward([&](int g) { return b[n.factor_of(g)] * (z[g] * inverse) + b[n.factors + g]; }, values.data());
    for (int g = 0; g < n.gates; ++g) gates.f32()[token * n.gates + g] = static_cast<float>(values[static_cast<std::size_t>(g)]);
  }
}

OpCost hyper_gates_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, logits, base, dgates, dlogits, dx, dbase] = unpack<7>(operands, "hyper_gates_backward");
  sizes_of_gates(x.shape, logits.shape, base.shape, dgates.shape, any);
  expect_shapes(dlogits.shape == logits.shape && dx.shape == x.shape && dbase.shape.elements() == base.shape.elements(),
                "hyper_gates' gradients are shaped as what they belong to");
  return memory_cost(bytes_of(x, logits, base, dgates, dlogits) + 2 * bytes_of(dx, dbase));
}

void hyper_gates_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, dgates, dlogits, dx, dbase] = unpack<7>(operands, "hyper_gates_backward");
  const HyperSizes n = sizes_of_gates(x.shape, logits.shape, base.shape, dgates.shape, any);
  const float* const b = base.f32();
  const std::int64_t all = n.streams * n.width;
  HyperGates<double> of_token(n, hyper_of(any).iterations, hyper_of(any).epsilon);
  std::vector<double> sums(static_cast<std::size_t>(n.factors + n.gates), 0.0);
  for (std::int64_t token = 0; token < n.tokens; ++token) {
    const double inverse = inverse_root_mean_square(n, x.f32() + token * all, any);
    const float* const z = logits.f32() + token * n.gates;
    GateValues values{}, gradients{};
    for (int g = 0; g < n.gates; ++g) gradients[static_cast<std::size_t>(g)] = dgates.f32()[token * n.gates + g];
    of_token.forward([&](int g) { return b[n.factor_of(g)] * (z[g] * inverse) + b[n.factors + g]; }, values.data());
    of_token.backward(values.data(), gradients.data());
    double of_inverse = 0;
    for (int g = 0; g < n.gates; ++g) {
      const double gradient = gradients[static_cast<std::size_t>(g)], factor = b[n.factor_of(g)];
      sums[static_cast<std::size_t>(n.factor_of(g))] += gradient * z[g] * inverse;
      sums[static_cast<std::size_t>(n.factors + g)] += gradient;
      dlogits.f32()[token * n.gates + g] = static_cast<float>(gradient * factor * inverse);
      of_inverse += gradient * factor * z[g];
    }
    const double through_norm = -of_inverse * inverse * inverse * inverse / static_cast<double>(all);
    for (std::int64_t i = token * all; i < (token + 1) * all; ++i)
      dx.f32()[i] = static_cast<float>(dx.f32()[i] + through_norm * x.f32()[i]);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) dbase.f32()[i] += static_cast<float>(sums[i]);
}

OpCost hyper_gather_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, gates, y] = unpack<3>(operands, "hyper_gather");
  hyper_sizes(x.shape, y.shape, any);
  hyper_sizes_with_gates(x.shape, gates.shape, any);
  return memory_cost(bytes_of(x, gates, y));
}

void hyper_gather_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, gates, y] = unpack<3>(operands, "hyper_gather");
  const HyperSizes n = hyper_sizes(x.shape, y.shape, any);
  for (std::int64_t i = 0; i < n.tokens * n.width; ++i) {
    const std::int64_t token = i / n.width;
    double sum = 0;
    for (int j = 0; j < n.streams; ++j)
      sum += double{gates.f32()[token * n.gates + j]} * x.f32()[(token * n.streams + j) * n.width + i % n.width];
    y.f32()[i] = static_cast<float>(sum);
  }
}

OpCost hyper_gather_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, gates, dy, dx, dgates] = unpack<5>(operands, "hyper_gather_backward");
  hyper_sizes(x.shape, dy.shape, any);
  hyper_sizes_with_gates(x.shape, gates.shape, any);
  expect_shapes(dx.shape == x.shape && dgates.shape == gates.shape, "gradients are shaped as what they belong to");
  return memory_cost(bytes_of(x, gates, dy) + 2 * bytes_of(dx, dgates));
}

void hyper_gather_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, gates, dy, dx, dgates] = unpack<5>(operands, "hyper_gather_backward");
  const HyperSizes n = hyper_sizes(x.shape, dy.shape, any);
  for (std::int64_t row = 0; row < n.tokens * n.streams; ++row) {
    const std::int64_t token = row / n.streams, gate = token * n.gates + row % n.streams;
    const float *const of_stream = x.f32() + row * n.width, *const gradient = dy.f32() + token * n.width;
    float* const out = dx.f32() + row * n.width;
    const float read = gates.f32()[gate];
    for (std::int64_t i = 0; i < n.width; ++i) out[i] += read * gradient[i];
    dgates.f32()[gate] += static_cast<float>(sum_of(n.width, [=](auto i) { return double{gradient[i]} * of_stream[i]; }));
  }
}

OpCost hyper_merge_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, gates, z, y] = unpack<4>(operands, "hyper_merge");
  hyper_sizes(x.shape, z.shape, any);
  const HyperSizes n = hyper_sizes_with_gates(x.shape, gates.shape, any);
  expect_shapes(n.mixes() && y.shape == x.shape, "hyper_merge mixes streams");
  return memory_cost(bytes_of(x, gates, z, y));
}

void hyper_merge_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, y] = unpack<4>(operands, "hyper_merge");
  const HyperSizes n = hyper_sizes(x.shape, z.shape, any);
  for (std::int64_t i = 0; i < n.tokens * n.width; ++i) {
    const std::int64_t token = i / n.width, first = token * n.streams * n.width + i % n.width;
    const float* const of_token = gates.f32() + token * n.gates;
    for (int to = 0; to < n.streams; ++to) {
      double sum = double{of_token[n.write(to)]} * z.f32()[i];
      for (int from = 0; from < n.streams; ++from) sum += double{of_token[n.mix(from, to)]} * x.f32()[first + from * n.width];
      y.f32()[first + to * n.width] = static_cast<float>(sum);
    }
  }
}

OpCost hyper_merge_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, gates, z, dy, dx, dz, dgates] = unpack<7>(operands, "hyper_merge_backward");
  hyper_sizes(x.shape, z.shape, any);
  hyper_sizes_with_gates(x.shape, gates.shape, any);
  expect_shapes(dy.shape == x.shape && dx.shape == x.shape && dz.shape == z.shape && dgates.shape == gates.shape,
                "hyper_merge's gradients are shaped as what they belong to");
  return memory_cost(bytes_of(x, gates, z, dy, dx, dz, dgates));
}

void hyper_merge_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, dy, dx, dz, dgates] = unpack<7>(operands, "hyper_merge_backward");
  const HyperSizes n = hyper_sizes(x.shape, z.shape, any);
  for (std::int64_t token = 0; token < n.tokens; ++token) {
    const std::int64_t first = token * n.streams * n.width;
    const float *const of_token = gates.f32() + token * n.gates, *const made = z.f32() + token * n.width;
    float* const gradients = dgates.f32() + token * n.gates;
    const auto stream = [&](const HostTensor& tensor, int j) { return tensor.f32() + first + j * n.width; };
    std::fill_n(gradients, n.streams, 0.0F);
    for (int to = 0; to < n.streams; ++to) {
      const float* const out = stream(dy, to);
      gradients[n.write(to)] = static_cast<float>(sum_of(n.width, [=](auto i) { return double{out[i]} * made[i]; }));
      for (int from = 0; from < n.streams; ++from) {
        const float* const in = stream(x, from);
        gradients[n.mix(from, to)] = static_cast<float>(sum_of(n.width, [=](auto i) { return double{out[i]} * in[i]; }));
      }
    }
    for (std::int64_t i = 0; i < n.width; ++i) {
      double through_half = 0;
      for (int to = 0; to < n.streams; ++to) through_half += double{of_token[n.write(to)]} * stream(dy, to)[i];
      dz.f32()[token * n.width + i] = static_cast<float>(through_half);
      for (int from = 0; from < n.streams; ++from) {
        double sum = 0;
        for (int to = 0; to < n.streams; ++to) sum += double{of_token[n.mix(from, to)]} * stream(dy, to)[i];
        stream(dx, from)[i] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace tandem
