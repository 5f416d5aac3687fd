#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/causal_conv.h"
#include "runtime/ops/documents_device.h"

// Rows are those of tokens, in the order of their documents. Neighbouring threads take neighbouring channels. The taps before a
// position were read by the rows before it, and come from a cache; so do the outputs after it, which the backward makes again for
// each of the positions that they came from.
namespace tandem {
namespace {

template <typename Element>
struct Convolution {
  const Element *x, *weight;
  std::int64_t positions, batch, width, weight_columns;
  int taps;
  std::int64_t first_column;
  bool biased;
  std::int64_t first_row[3], rows[3];  ///< of the runs of channels
  TokenOrder order;

  TANDEM_DEVICE std::int64_t place(std::int64_t t, std::int64_t b) const { return order.position(b, t) * batch + b; }
  TANDEM_DEVICE float input(std::int64_t t, std::int64_t b, std::int64_t channel) const {
    return to_float(x[place(t, b) * width + first_column + channel]);
  }
  TANDEM_DEVICE int first_tap(std::int64_t t, std::int64_t b) const {
    const std::int64_t before = order.before(b, t);
    return before < taps - 1 ? static_cast<int>(taps - 1 - before) : 0;
  }
  TANDEM_DEVICE const Element* row(std::int64_t channel) const { return weight + row_of(channel) * weight_columns; }
  TANDEM_DEVICE std::int64_t row_of(std::int64_t channel) const {
    if (channel < rows[0]) return first_row[0] + channel;
    channel -= rows[0];
    return channel < rows[1] ? first_row[1] + channel : first_row[2] + channel - rows[1];
  }
  TANDEM_DEVICE float sum(std::int64_t t, std::int64_t b, std::int64_t channel) const {
    const Element* const w = row(channel);
    float result = biased ? to_float(w[taps]) : 0.0F;
    for (int j = first_tap(t, b); j < taps; ++j) result += to_float(w[j]) * input(t - taps + 1 + j, b, channel);
    return result;
  }
  /// The gradient before the activation.
  TANDEM_DEVICE float inner(const Element* dy, std::int64_t t, std::int64_t b, std::int64_t channel,
                            std::int64_t channels) const {
    const float z = sum(t, b, channel), sigmoid = 1 / (1 + expf(-z));
    return to_float(dy[place(t, b) * channels + channel]) * sigmoid * (1 + z * (1 - sigmoid));
  }
};

template <typename Element>
struct Forward {
  static constexpr int vector = 1;
  Convolution<Element> convolution;
  Element* y;
  std::int64_t channels;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t channel) const {
    const std::int64_t t = row / convolution.batch, b = row % convolution.batch;
    const float z = convolution.sum(t, b, channel);
    y[convolution.place(t, b) * channels + channel] = from_float<Element>(z / (1 + expf(-z)));
  }
};

template <typename Element>
struct InputGradient {
  static constexpr int vector = 1;
  Convolution<Element> convolution;
  const Element* dy;
  Element* dx;
  std::int64_t channels;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t channel) const {
    const Convolution<Element>& c = convolution;
    const std::int64_t t = row / c.batch, b = row % c.batch;
    const Element* const w = c.row(channel);
    float sum = 0;
    for (int j = 0; j < c.taps; ++j) {
      const std::int64_t ahead = c.taps - 1 - j, later = t + ahead;
      if (later < c.positions && c.order.reaches_back(b, later, ahead))
        sum += to_float(w[j]) * c.inner(dy, later, b, channel, channels);
    }
    dx[c.place(t, b) * c.width + c.first_column + channel] = from_float<Element>(sum);
  }
};

constexpr int channels_of_block = 32, rows_of_conv_block = 16;

template <typename Element, typename Gradient>
__global__ void conv_weight_gradient_kernel(Convolution<Element> c, const Element* dy, Gradient* dweight, std::int64_t channels) {
  TANDEM_SHARED(float, sums, channels_of_block* rows_of_conv_block);
  const std::int64_t channel = std::int64_t{blockIdx.x} * channels_of_block + threadIdx.x;
  float of_taps[most_taps + 1] = {};
  if (channel < channels) {
    for (std::int64_t row = threadIdx.y; row < c.positions * c.batch; row += rows_of_conv_block) {
      const std::int64_t t = row / c.batch, b = row % c.batch;
      const float d = c.inner(dy, t, b, channel, channels);
      const int first = c.first_tap(t, b);
      for (int j = 0; j < c.taps; ++j)
        if (j >= first) of_taps[j] += d * c.input(t - c.taps + 1 + j, b, channel);
      of_taps[c.taps] += d;
    }
  }
  for (int j = 0; j < c.weight_columns; ++j) {
    __syncthreads();
    sums[threadIdx.y * channels_of_block + threadIdx.x] = of_taps[j];
    __syncthreads();
    if (threadIdx.y != 0 || channel >= channels) continue;
    float sum = 0;
    for (int i = 0; i < rows_of_conv_block; ++i) sum += sums[i * channels_of_block + static_cast<int>(threadIdx.x)];
    Gradient& out = dweight[c.row_of(channel) * c.weight_columns + j];
    out = from_float<Gradient>(to_float(out) + sum);
  }
}

template <typename Element>
Convolution<Element> convolution_of(const Queue& queue, const DeviceTensor& x, const DeviceTensor& weight,
                                    const CausalConvAttributes& attributes) {
  const std::int64_t columns = columns_of(weight.shape);
  Scratch scratch(queue);
  return {x.template as<const Element>(),
          weight.template as<const Element>(),
          x.shape[0],
          x.shape[1],
          columns_of(x.shape),
          columns,
          static_cast<int>(columns - (attributes.biased ? 1 : 0)),
          attributes.first_column,
          attributes.biased,
          {attributes.row[0], attributes.row[1], attributes.row[2]},
          {attributes.rows[0], attributes.rows[1], attributes.rows[2]},
          put_order("causal_conv", queue, scratch, attributes.documents, x.shape[0], x.shape[1])};
}

}  // namespace

void causal_conv_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weight, y] = checked<3>(OpKind::causal_conv, operands, any);
  expect_types(of_one_type(x, weight, y), "a convolution's operands are of one type");
  with_type(x.dtype, [&, x = x, weight = weight, y = y]<typename Element>(Type<Element>) {
    const Forward<Element> body{convolution_of<Element>(queue, x, weight, std::get<CausalConvAttributes>(any)),
                                y.template as<Element>(), columns_of(y.shape)};
    launch_by_rows("causal_conv", queue, rows_of(y.shape), columns_of(y.shape), false, body);
  });
}

std::size_t causal_conv_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const Shape& x = operands[0].shape;
  return token_order_scratch(std::get<CausalConvAttributes>(any).documents, x[0], x[1]);
}

std::size_t causal_conv_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  return causal_conv_scratch(operands, any);
}

void causal_conv_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weight, dy, dx, dweight] = checked<5>(OpKind::causal_conv_backward, operands, any);
  expect_types(of_one_type(x, weight, dy, dx), "a convolution's operands are of one type, but for the weight's gradient");
  const std::int64_t channels = columns_of(dy.shape);
  with_type(x.dtype, [&, x = x, weight = weight, dy = dy, dx = dx, dweight = dweight]<typename Element>(Type<Element>) {
    const auto convolution = convolution_of<Element>(queue, x, weight, std::get<CausalConvAttributes>(any));
    const InputGradient<Element> body{convolution, dy.template as<const Element>(), dx.template as<Element>(), channels};
    launch_by_rows("causal_conv_backward", queue, rows_of(dy.shape), channels, false, body);
    with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
      launch("causal_conv_backward", queue,
             {dim3(blocks_along_x(divide_up(channels, channels_of_block))), dim3(channels_of_block, rows_of_conv_block)},
             conv_weight_gradient_kernel<Element, Gradient>, convolution, dy.template as<const Element>(),
             dweight.template as<Gradient>(), channels);
    });
  });
}

}  // namespace tandem
