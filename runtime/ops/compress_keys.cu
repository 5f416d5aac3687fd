#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/compress_sizes.h"

// A thread for each element of a key; the bias' gradient is summed by a thread for each of its elements, window by window, of
// gradients of the scores in fp32: 8 bytes for each beside those of the cost.
namespace tandem {
namespace {

template <typename Element>
struct CompressedWindows {
  CompressSizes n;
  const Element *c, *z, *bias;

  TANDEM_DEVICE float score(std::int64_t window, std::int32_t place, std::int64_t b, std::int64_t e) const {
    return to_float(z[n.at(window, place, b, e)]) + to_float(bias[n.of_bias(place, e)]);
  }
  /// The largest score of an element's window, and the sum of the exponentials below it.
  TANDEM_DEVICE void statistics(std::int64_t window, std::int64_t b, std::int64_t e, float& largest, float& sum) const {
    largest = -INFINITY;
    sum = 0;
    for (std::int32_t place = n.first_place(window); place < n.ratio; ++place)
      largest = fmaxf(largest, score(window, place, b, e));
    for (std::int32_t place = n.first_place(window); place < n.ratio; ++place) sum += expf(score(window, place, b, e) - largest);
  }
};

template <typename Element>
struct CompressForward {
  static constexpr int vector = 1;
  CompressedWindows<Element> of;
  Element* k;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const CompressSizes& n = of.n;
    const std::int64_t e = i % n.width, b = i / n.width % n.batch, window = i / n.width / n.batch;
    float largest = 0, sum = 0, key = 0;
    of.statistics(window, b, e, largest, sum);
    for (std::int32_t place = n.first_place(window); place < n.ratio; ++place)
      key += expf(of.score(window, place, b, e) - largest) / sum * to_float(of.c[n.at(window, place, b, e)]);
    k[i] = from_float<Element>(key);
  }
};

template <typename Element>
struct CompressBackward {
  static constexpr int vector = 1;
  CompressedWindows<Element> of;
  const Element *k, *dk;
  Element *dc, *dz;
  float* exact;  ///< dz as it is before it is rounded

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const CompressSizes& n = of.n;
    const std::int64_t e = i % n.width, b = i / n.width % n.batch, window = i / n.width / n.batch;
    float largest = 0, sum = 0;
    of.statistics(window, b, e, largest, sum);
    const float key = to_float(k[i]), gradient = to_float(dk[i]);
    for (std::int32_t place = n.first_place(window); place < n.ratio; ++place) {
      const std::int64_t at = n.at(window, place, b, e);
      const float share = expf(of.score(window, place, b, e) - largest) / sum;
      dc[at] = from_float<Element>(share * gradient);
      exact[at] = share * (to_float(of.c[at]) - key) * gradient;
      dz[at] = from_float<Element>(exact[at]);
    }
    if (!n.overlap || window + 1 < n.windows) return;
    for (std::int32_t place = 0; place < n.ratio; ++place) {  // that no window reads
      const std::int64_t at = n.at(window + 1, place - n.ratio, b, e);
      dc[at] = dz[at] = from_float<Element>(0.0F);
      exact[at] = 0;
    }
  }
};

template <typename Gradient>
struct CompressBias {
  static constexpr int vector = 1;
  CompressSizes n;
  const float* dz;
  Gradient* dbias;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t row = i / n.rows_width, column = i % n.rows_width;
    float sum = 0;
    for (std::int64_t window = 0; window < n.windows; ++window)
      for (std::int64_t b = 0; b < n.batch; ++b) sum += dz[((window * n.ratio + row) * n.batch + b) * n.rows_width + column];
    dbias[i] = from_float<Gradient>(to_float(dbias[i]) + sum);
  }
};

}  // namespace

void compress_keys_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [c, z, bias, k] = checked<4>(OpKind::compress_keys, operands, any);
  expect_types(of_one_type(c, z, bias, k), "compress_keys' operands are of one type");
  const CompressSizes n(c.shape, bias.shape, k.shape, std::get<CompressAttributes>(any));
  with_type(c.dtype, [&, c = c, z = z, bias = bias, k = k]<typename Element>(Type<Element>) {
    const CompressedWindows<Element> of{n, c.template as<const Element>(), z.template as<const Element>(),
                                        bias.template as<const Element>()};
    launch_elementwise("compress_keys", queue, k.shape.elements(), false, CompressForward<Element>{of, k.template as<Element>()});
  });
}

void compress_keys_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "compress_keys_backward";
  const auto [c, z, bias, k, dk, dc, dz, dbias] = checked<8>(OpKind::compress_keys_backward, operands, any);
  expect_types(of_one_type(c, z, bias, k, dk, dc, dz), "compress_keys' operands are of one type, but for the bias' gradient");
  const CompressSizes n(c.shape, bias.shape, k.shape, std::get<CompressAttributes>(any));
  with_type(c.dtype,
            [&, c = c, z = z, bias = bias, k = k, dk = dk, dc = dc, dz = dz, dbias = dbias]<typename Element>(Type<Element>) {
              const CompressedWindows<Element> of{n, c.template as<const Element>(), z.template as<const Element>(),
                                                  bias.template as<const Element>()};
              auto* const exact = static_cast<float*>(queue.scratch);
              const CompressBackward<Element> body{of,
                                                   k.template as<const Element>(),
                                                   dk.template as<const Element>(),
                                                   dc.template as<Element>(),
                                                   dz.template as<Element>(),
                                                   exact};
              launch_elementwise(name, queue, k.shape.elements(), false, body);
              with_type(dbias.dtype, [&]<typename Gradient>(Type<Gradient>) {
                const CompressBias<Gradient> sums{n, exact, dbias.template as<Gradient>()};
                launch_elementwise(name, queue, dbias.shape.elements(), false, sums);
              });
            });
}

std::size_t compress_keys_backward_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return static_cast<std::size_t>(operands[0].shape.elements()) * sizeof(float);
}

}  // namespace tandem
