#include "runtime/ops/causal_conv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/ops/documents.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

std::int64_t taps_of(const Shape& weight, const CausalConvAttributes& attributes) {
  return columns_of(weight) - (attributes.biased ? 1 : 0);
}

void check_conv(const Shape& x, const Shape& weight, const Shape& y, const CausalConvAttributes& attributes) {
  expect_shapes(x.rank == 3 && y.rank == 3 && x[0] == y[0] && x[1] == y[1], "a convolution keeps positions and batch");
  expect_shapes(columns_of(y) == attributes.channels() && attributes.first_column + columns_of(y) <= columns_of(x),
                "a convolution's channels are columns of its input");
  for (std::size_t i = 0; i < attributes.rows.size(); ++i)
    expect_shapes(attributes.row[i] + attributes.rows[i] <= rows_of(weight), "each channel has a row of the weight");
  expect_shapes(taps_of(weight, attributes) >= 1 && taps_of(weight, attributes) <= most_taps, "a convolution has 1 to 8 taps");
}

/// One channel of one sequence, by token: that at position p lies at data[p * stride].
struct ChannelSeries {
  float* data;
  std::int64_t stride, sequence;
  TokenOrder order;
  float& operator[](std::int64_t t) const { return data[order.position(sequence, t) * stride]; }
  /// The first tap that token t of the sequence has a token for.
  std::int64_t first_tap(std::int64_t t, std::int64_t taps) const {
    return std::max<std::int64_t>(0, taps - 1 - order.before(sequence, t));
  }
};

double before_activation(const ChannelSeries& x, const float* weight, std::int64_t taps, bool biased, std::int64_t t) {
  double sum = biased ? weight[taps] : 0.0F;
  for (std::int64_t j = x.first_tap(t, taps); j < taps; ++j) sum += double{weight[j]} * x[t - taps + 1 + j];
  return sum;
}

template <typename PerChannel>
void for_each_channel(const Shape& y, PerChannel per_channel) {
  for (std::int64_t b = 0; b < y[1]; ++b)
    for (std::int64_t c = 0; c < y[2]; ++c) per_channel(b, c);
}

ChannelSeries series(const HostTensor& tensor, std::int64_t b, std::int64_t column, const HostTokenOrder& order) {
  const std::int64_t width = columns_of(tensor.shape);
  return {tensor.f32() + b * width + column, tensor.shape[1] * width, b, order.get()};
}

Bytes bytes_read(const OperandType& x, const Shape& y) { return y.elements() * size_of(x.dtype); }

}  // namespace

OpCost causal_conv_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weight, y] = unpack<3>(operands, "causal_conv");
  check_conv(x.shape, weight.shape, y.shape, std::get<CausalConvAttributes>(any));
  return memory_cost(bytes_read(x, y.shape) + bytes_of(weight, y));
}

void causal_conv_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<CausalConvAttributes>(any);
  const auto [x, weight, y] = unpack<3>(operands, "causal_conv");
  check_conv(x.shape, weight.shape, y.shape, attributes);
  const std::int64_t taps = taps_of(weight.shape, attributes);
  const HostTokenOrder order(attributes.documents, y.shape[0], y.shape[1]);
  for_each_channel(y.shape, [&, x = x, weight = weight, y = y](std::int64_t b, std::int64_t c) {
    const ChannelSeries in = series(x, b, attributes.first_column + c, order), out = series(y, b, c, order);
    const float* w = weight.f32() + attributes.row_of(c) * columns_of(weight.shape);
    for (std::int64_t t = 0; t < y.shape[0]; ++t) {
      const double sum = before_activation(in, w, taps, attributes.biased, t);
      out[t] = static_cast<float>(sum / (1 + std::exp(-sum)));
    }
  });
}

OpCost causal_conv_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weight, dy, dx, dweight] = unpack<5>(operands, "causal_conv_backward");
  check_conv(x.shape, weight.shape, dy.shape, std::get<CausalConvAttributes>(any));
  expect_shapes(dx.shape == x.shape && dweight.shape == weight.shape, "a convolution's gradients are shaped as their tensors");
  return memory_cost(bytes_read(x, dy.shape) + bytes_read(dx, dy.shape) + bytes_of(weight, dy) + 2 * dweight.bytes());
}

void causal_conv_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<CausalConvAttributes>(any);
  const auto [x, weight, dy, dx, dweight] = unpack<5>(operands, "causal_conv_backward");
  check_conv(x.shape, weight.shape, dy.shape, attributes);
  const std::int64_t taps = taps_of(weight.shape, attributes), s = dy.shape[0];
  std::vector<double> inner(static_cast<std::size_t>(s));  // the gradient before the activation
  const HostTokenOrder order(attributes.documents, s, dy.shape[1]);
  for_each_channel(dy.shape, [&, x = x, weight = weight, dy = dy, dx = dx, dweight = dweight](std::int64_t b, std::int64_t c) {
    const std::int64_t column = attributes.first_column + c, row = attributes.row_of(c) * columns_of(weight.shape);
    const ChannelSeries in = series(x, b, column, order), gradient = series(dy, b, c, order), out = series(dx, b, column, order);
    const float* w = weight.f32() + row;
    std::array<double, most_taps + 1> sums{};
    for (std::int64_t t = 0; t < s; ++t) {
      const double z = before_activation(in, w, taps, attributes.biased, t), sigmoid = 1 / (1 + std::exp(-z));
      const double d = inner[static_cast<std::size_t>(t)] = gradient[t] * sigmoid * (1 + z * (1 - sigmoid));
      for (std::int64_t j = in.first_tap(t, taps); j < taps; ++j) sums[static_cast<std::size_t>(j)] += d * in[t - taps + 1 + j];
      sums[static_cast<std::size_t>(taps)] += d;
    }
    for (std::int64_t t = 0; t < s; ++t) {
      double sum = 0;
      for (std::int64_t j = 0; j < taps; ++j) {
        const std::int64_t ahead = taps - 1 - j;
        if (t + ahead < s && in.order.reaches_back(b, t + ahead, ahead)) sum += w[j] * inner[static_cast<std::size_t>(t + ahead)];
      }
      out[t] = static_cast<float>(sum);
    }
    for (std::int64_t j = 0; j < columns_of(weight.shape); ++j)
      dweight.f32()[row + j] += static_cast<float>(sums[static_cast<std::size_t>(j)]);
  });
}

}  // namespace tandem
