#include <algorithm>

#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/occupancy.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/causal_conv.h"
#include "runtime/ops/column_sum_device.h"
#include "runtime/ops/documents_device.h"
#include "runtime/ops/sigmoid_device.h"

// A thread keeps to a few neighbouring channels and goes down a slice of the positions, in the order of their documents. What it
// read of the positions before stays in its registers, and so do, in the backward, the gradients of these positions that later
// ones still add to, and the sums for the weight. So everything crosses the memory once, as the cost says, but for the positions
// around a slice, which neighbours read as well, and some MB of partial sums.
namespace tandem {
namespace {

constexpr int threads_of_conv = 128;
constexpr int rows_ahead = 4;  ///< whose loads are under way

template <typename Element>
struct Convolution {
  const Element *x, *weight;
  std::int64_t positions, batch, width, weight_columns;
  int taps;
  std::int64_t first_column, channels;
  bool biased;
  std::int64_t first_row[3], rows[3];  ///< of the runs of channels
  TokenOrder order;
  std::int64_t slice;  ///< positions of one

  TANDEM_DEVICE std::int64_t place(std::int64_t t) const { return order.position(blockIdx.z, t) * batch + blockIdx.z; }
  TANDEM_DEVICE std::int64_t at_input(std::int64_t t, std::int64_t channel) const {
    return place(t) * width + first_column + channel;
  }
  TANDEM_DEVICE std::int64_t at_output(std::int64_t t, std::int64_t channel) const { return place(t) * channels + channel; }
  /// How many positions back the taps of a position reach.
  TANDEM_DEVICE int reach(std::int64_t t) const {
    return static_cast<int>(smaller(order.before(blockIdx.z, t), std::int64_t{taps - 1}));
  }
  TANDEM_DEVICE std::int64_t row_of(std::int64_t channel) const {
    if (channel < rows[0]) return first_row[0] + channel;
    channel -= rows[0];
    return channel < rows[1] ? first_row[1] + channel : first_row[2] + channel - rows[1];
  }
};

/// Of n channels and up to `most` taps: the weights by how many positions a tap reaches back, and the inputs as far back.
template <int n, int most>
struct ChannelsOfThread {
  float weights[most][n] = {}, bias[n] = {}, inputs[most][n] = {};

  template <typename Element>
  TANDEM_DEVICE ChannelsOfThread(const Convolution<Element>& c, std::int64_t channel, std::int64_t first) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const Element* const row = c.weight + c.row_of(channel + i) * c.weight_columns;
#pragma unroll
      for (int back = 0; back < most; ++back)
        if (back < c.taps) weights[back][i] = to_float(row[c.taps - 1 - back]);
      if (c.biased) bias[i] = to_float(row[c.taps]);
    }
#pragma unroll
    for (int back = 1; back < most; ++back)
      if (back < c.taps && first >= back) load(c.x + c.at_input(first - back, channel), inputs[back - 1]);
  }

  /// Goes to the next position, of such inputs.
  TANDEM_DEVICE void next(const float (&x)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int back = most - 1; back > 0; --back) inputs[back][i] = inputs[back - 1][i];
      inputs[0][i] = x[i];
    }
  }
  TANDEM_DEVICE void convolve(int reach, float (&z)[n]) const {
#pragma unroll
    for (int i = 0; i < n; ++i) z[i] = bias[i];
#pragma unroll
    for (int back = most - 1; back >= 0; --back) {
      if (back > reach) continue;
#pragma unroll
      for (int i = 0; i < n; ++i) z[i] += weights[back][i] * inputs[back][i];
    }
  }
};

template <int n, int most, typename Element>
__global__ void __launch_bounds__(threads_of_conv) causal_conv_kernel(Convolution<Element> c, Element* y) {
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads_of_conv + threadIdx.x) * n;
  if (channel >= c.channels) return;
  const std::int64_t first = blockIdx.y * c.slice, end = smaller(first + c.slice, c.positions);
  constexpr int bytes = n * static_cast<int>(sizeof(Element));
  ChannelsOfThread<n, most> channels(c, channel, first);
  alignas(widest_access) Element raw[rows_ahead][n];
#pragma unroll
  for (int i = 0; i < rows_ahead; ++i)
    if (first + i < end) copy_aligned<bytes>(raw[i], c.x + c.at_input(first + i, channel));
  for (std::int64_t begin = first; begin < end; begin += rows_ahead) {
#pragma unroll
    for (int i = 0; i < rows_ahead; ++i) {
      const std::int64_t t = begin + i;
      if (t >= end) continue;
      float x[n], z[n];
#pragma unroll
      for (int j = 0; j < n; ++j) x[j] = to_float(raw[i][j]);
      if (t + rows_ahead < end) copy_aligned<bytes>(raw[i], c.x + c.at_input(t + rows_ahead, channel));
      channels.next(x);
      channels.convolve(c.reach(t), z);
#pragma unroll
      for (int j = 0; j < n; ++j) z[j] *= sigmoid_fast(z[j]);
      store(y + c.at_output(t, channel), z);
    }
  }
}

/// What a thread of the backward keeps from position to position: the gradients that later positions still add to, the sums for
/// the weight, and the next positions' operands, which are under way.
template <int n, int most, typename Element>
struct ConvGradients {
  static constexpr int bytes = n * static_cast<int>(sizeof(Element));
  float gradients[most][n] = {}, dweights[most][n] = {}, dbias[n] = {};
  alignas(widest_access) Element x[rows_ahead][n], dy[rows_ahead][n];

  TANDEM_DEVICE void load(int i, const Element* next_x, const Element* next_dy) {
    copy_aligned<bytes>(x[i], next_x);
    copy_aligned<bytes>(dy[i], next_dy);
  }
  /// Makes room for a position, whose place is `most` - 1 before another's.
  TANDEM_DEVICE void shift() {
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int back = most - 1; back > 0; --back) gradients[back][j] = gradients[back - 1][j];
      gradients[0][j] = 0;
    }
  }
  /// Adds what position i of those ahead says, whose taps reach so far back; `next_x` and `next_dy`, unless they are null, are
  /// loaded in its place. `counts`: to the weight's gradient, too.
  TANDEM_DEVICE void add(ChannelsOfThread<n, most>& channels, int i, int reach, bool counts, const Element* next_x,
                         const Element* next_dy) {
    float in[n], d[n], z[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      in[j] = to_float(x[i][j]);
      d[j] = to_float(dy[i][j]);
    }
    if (next_x != nullptr) load(i, next_x, next_dy);
    channels.next(in);
    channels.convolve(reach, z);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float sigmoid = sigmoid_fast(z[j]);
      d[j] *= sigmoid * (1 + z[j] * (1 - sigmoid));
      if (counts) dbias[j] += d[j];
    }
#pragma unroll
    for (int back = 0; back < most; ++back) {
      if (back > reach) continue;
#pragma unroll
      for (int j = 0; j < n; ++j) {
        gradients[back][j] += channels.weights[back][j] * d[j];
        if (counts) dweights[back][j] += channels.inputs[back][j] * d[j];
      }
    }
  }
};

/// partial [slices][batch][weight's columns][channels]: a thread's share of the weight's gradient.
template <int n, int most, typename Element>
__global__ void __launch_bounds__(threads_of_conv)
    causal_conv_backward_kernel(Convolution<Element> c, const Element* dy, Element* dx, float* partial) {
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads_of_conv + threadIdx.x) * n;
  if (channel >= c.channels) return;
  // The gradient of a position is complete `most` - 1 positions later.
  constexpr int later = most - 1;
  const std::int64_t first = blockIdx.y * c.slice, end = smaller(first + c.slice, c.positions), last = end + later;
  const std::int64_t read_end = smaller(last, c.positions);
  ChannelsOfThread<n, most> channels(c, channel, first);
  ConvGradients<n, most, Element> sums;
#pragma unroll
  for (int i = 0; i < rows_ahead; ++i)
    if (first + i < read_end) sums.load(i, c.x + c.at_input(first + i, channel), dy + c.at_output(first + i, channel));
  // Most positions are inside: nothing about them has to be asked, and their addresses follow each other.
  const bool inside_exist = c.order.tokens == nullptr && c.taps == most;
  const std::int64_t input_stride = c.batch * c.width, output_stride = c.batch * c.channels;
  for (std::int64_t begin = first; begin < last; begin += rows_ahead) {
    if (inside_exist && begin >= first + later && begin + rows_ahead <= end && begin + 2 * rows_ahead <= read_end) {
      const Element* const next_x = c.x + c.at_input(begin + rows_ahead, channel);
      const Element* const next_dy = dy + c.at_output(begin + rows_ahead, channel);
      Element* const complete = dx + c.at_input(begin - later, channel);
#pragma unroll
      for (int i = 0; i < rows_ahead; ++i) {
        sums.shift();
        sums.add(channels, i, later, true, next_x + i * input_stride, next_dy + i * output_stride);
        store(complete + i * input_stride, sums.gradients[later]);
      }
      continue;
    }
#pragma unroll
    for (int i = 0; i < rows_ahead; ++i) {
      const std::int64_t t = begin + i, complete = t - later, next = t + rows_ahead;
      sums.shift();
      if (t < read_end) {
        const bool more = next < read_end;
        sums.add(channels, i, c.reach(t), t < end, more ? c.x + c.at_input(next, channel) : nullptr,
                 more ? dy + c.at_output(next, channel) : nullptr);
      }
      if (complete >= first && complete < end) store(dx + c.at_input(complete, channel), sums.gradients[later]);
    }
  }
  float* const mine = partial + (std::int64_t{blockIdx.y} * gridDim.z + blockIdx.z) * c.weight_columns * c.channels + channel;
#pragma unroll
  for (int back = 0; back < most; ++back)
    if (back < c.taps) store(mine + (c.taps - 1 - back) * c.channels, sums.dweights[back]);
  if (c.biased) store(mine + c.taps * c.channels, sums.dbias);
}

template <typename Element, typename Gradient>
__global__ void conv_weight_gradient_kernel(Convolution<Element> c, const float* partial, int rows, Gradient* dweight) {
  const std::int64_t column = std::int64_t{blockIdx.x} * panel + threadIdx.x, columns = c.weight_columns * c.channels;
  const float sum = sum_of_rows(partial, rows, columns, column);
  if (threadIdx.y != 0 || column >= columns) return;
  const std::int64_t tap = column / c.channels, channel = column - tap * c.channels;
  Gradient& out = dweight[c.row_of(channel) * c.weight_columns + tap];
  out = from_float<Gradient>(to_float(out) + sum);
}

constexpr int channels_of_thread = 4;

std::int64_t slices_of_conv(const Shape& x, std::int64_t channels, std::int64_t of_thread) {
  const std::int64_t threads = round_up(divide_up(channels, of_thread), std::int64_t{threads_of_conv}) * x[1];
  constexpr std::int64_t shortest = 32;  // the positions around a slice are read and computed twice
  return partial_rows(divide_up(x[0], shortest), threads);
}

template <typename Element>
Convolution<Element> convolution_of(const Queue& queue, Scratch& scratch, const DeviceTensor& x, const DeviceTensor& weight,
                                    std::int64_t channels, const CausalConvAttributes& attributes) {
  const std::int64_t columns = columns_of(weight.shape);
  return {x.template as<const Element>(),
          weight.template as<const Element>(),
          x.shape[0],
          x.shape[1],
          columns_of(x.shape),
          columns,
          static_cast<int>(columns - (attributes.biased ? 1 : 0)),
          attributes.first_column,
          channels,
          attributes.biased,
          {attributes.row[0], attributes.row[1], attributes.row[2]},
          {attributes.rows[0], attributes.rows[1], attributes.rows[2]},
          put_order("causal_conv", queue, scratch, attributes.documents, x.shape[0], x.shape[1]),
          x.shape[0]};
}

/// Calls visit(Sizes<n, most>{}) with the channels of a thread and the most taps that a kernel is compiled for.
template <int n, int most>
struct ConvSizes {};
template <typename Element, typename Visit>
void with_conv_sizes(const Convolution<Element>& c, std::initializer_list<DeviceTensor> tensors, Visit visit) {
  constexpr int n = channels_of_thread, few_taps = 4, all_taps = static_cast<int>(most_taps);
  const bool aligned = c.width % n == 0 && c.first_column % n == 0 && c.channels % n == 0 && are_aligned(tensors, n);
  if (!aligned) return visit(ConvSizes<1, all_taps>{});
  if (c.taps <= few_taps) return visit(ConvSizes<n, few_taps>{});
  visit(ConvSizes<n, all_taps>{});
}

/// Cuts the positions into slices for the kernel; returns their grid.
template <typename Element, typename... Parameters>
Grid cut(const Queue& queue, Convolution<Element>& c, std::int64_t n, void (*kernel)(Parameters...)) {
  const std::int64_t along_channels = divide_up(c.channels, n * threads_of_conv);
  const std::int64_t most = slices_of_conv(Shape(c.positions, c.batch, c.width), c.channels, n);
  c.slice =
      divide_up(c.positions, slices_at_once(blocks_at_once(queue, kernel, threads_of_conv), along_channels * c.batch, most));
  return {dim3(blocks_along_x(along_channels), static_cast<unsigned>(divide_up(c.positions, c.slice)),
               static_cast<unsigned>(c.batch)),
          dim3(threads_of_conv)};
}

}  // namespace

void causal_conv_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weight, y] = checked<3>(OpKind::causal_conv, operands, any);
  expect_types(of_one_type(x, weight, y), "a convolution's operands are of one type");
  with_type(x.dtype, [&, x = x, weight = weight, y = y]<typename Element>(Type<Element>) {
    Scratch scratch(queue);
    auto c = convolution_of<Element>(queue, scratch, x, weight, columns_of(y.shape), std::get<CausalConvAttributes>(any));
    with_conv_sizes(c, {x, y}, [&, y = y]<int n, int most>(ConvSizes<n, most>) {
      auto* const kernel = causal_conv_kernel<n, most, Element>;
      const Grid grid = cut(queue, c, n, kernel);
      launch("causal_conv", queue, grid, kernel, c, y.template as<Element>());
    });
  });
}

std::size_t causal_conv_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const Shape& x = operands[0].shape;
  return token_order_scratch(std::get<CausalConvAttributes>(any).documents, x[0], x[1]);
}

void causal_conv_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weight, dy, dx, dweight] = checked<5>(OpKind::causal_conv_backward, operands, any);
  expect_types(of_one_type(x, weight, dy, dx), "a convolution's operands are of one type, but for the weight's gradient");
  with_type(x.dtype, [&, x = x, weight = weight, dy = dy, dx = dx, dweight = dweight]<typename Element>(Type<Element>) {
    Scratch scratch(queue);
    auto c = convolution_of<Element>(queue, scratch, x, weight, columns_of(dy.shape), std::get<CausalConvAttributes>(any));
    with_conv_sizes(c, {x, dy, dx}, [&, dy = dy, dx = dx, dweight = dweight]<int n, int most>(ConvSizes<n, most>) {
      auto* const kernel = causal_conv_backward_kernel<n, most, Element>;
      const Grid grid = cut(queue, c, n, kernel);
      const std::int64_t rows = std::int64_t{grid.blocks.y} * grid.blocks.z, columns = c.weight_columns * c.channels;
      auto* const partial = static_cast<float*>(scratch.take(static_cast<std::size_t>(rows * columns) * sizeof(float)));
      launch("causal_conv_backward", queue, grid, kernel, c, dy.template as<const Element>(), dx.template as<Element>(), partial);
      with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
        launch("causal_conv_backward", queue, {dim3(blocks_along_x(divide_up(columns, panel))), dim3(panel, panel)},
               conv_weight_gradient_kernel<Element, Gradient>, c, partial, static_cast<int>(rows),
               dweight.template as<Gradient>());
      });
    });
  });
}

std::size_t causal_conv_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const Shape& x = operands[0].shape;
  const std::int64_t channels = columns_of(operands[2].shape), columns = columns_of(operands[1].shape) * channels;
  const std::int64_t rows = slices_of_conv(x, channels, channels_of_thread) * x[1];
  return scratch_piece(causal_conv_scratch(operands, any)) +
         scratch_piece(static_cast<std::size_t>(rows * columns) * sizeof(float));
}

}  // namespace tandem
