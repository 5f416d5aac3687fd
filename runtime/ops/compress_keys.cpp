#include "runtime/ops/compress_keys.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/ops/compress_sizes.h"

namespace tandem {
namespace {

CompressSizes compress_sizes(const Shape& c, const Shape& z, const Shape& bias, const Shape& k, const OpAttributes& any) {
  expect_shapes(c == z, "compress_keys has a score for each value");
  return {c, bias, k, std::get<CompressAttributes>(any)};
}

/// Of one element, by place: the softmax of its scores.
void shares_of_window(const CompressSizes& n, const HostTensor& z, const HostTensor& bias, std::int64_t window, std::int64_t b,
                      std::int64_t e, std::vector<double>& shares) {
  shares.clear();
  for (std::int32_t place = n.first_place(window); place < n.ratio; ++place)
    shares.push_back(double{z.f32()[n.at(window, place, b, e)]} + bias.f32()[n.of_bias(place, e)]);
  const double largest = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
  for (double& share : shares) share /= sum;
}

/// Calls per_key(window, b, e, shares).
template <typename PerKey>
void for_each_key(const CompressSizes& n, const HostTensor& z, const HostTensor& bias, PerKey per_key) {
  std::vector<double> shares;
  for (std::int64_t window = 0; window < n.windows; ++window)
    for (std::int64_t b = 0; b < n.batch; ++b)
      for (std::int64_t e = 0; e < n.width; ++e) {
        shares_of_window(n, z, bias, window, b, e, shares);
        per_key(window, b, e, shares);
      }
}

}  // namespace

OpCost compress_keys_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [c, z, bias, k] = unpack<4>(operands, "compress_keys");
  compress_sizes(c.shape, z.shape, bias.shape, k.shape, any);
  return memory_cost(bytes_of(c, z, bias, k));
}

void compress_keys_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [c, z, bias, k] = unpack<4>(operands, "compress_keys");
  const CompressSizes n = compress_sizes(c.shape, z.shape, bias.shape, k.shape, any);
  for_each_key(n, z, bias, [&, c = c, k = k](std::int64_t window, std::int64_t b, std::int64_t e, const auto& shares) {
    double key = 0;
    std::int32_t place = n.first_place(window);
    for (const double share : shares) key += share * c.f32()[n.at(window, place++, b, e)];
    k.f32()[n.of_key(window, b, e)] = static_cast<float>(key);
  });
}

OpCost compress_keys_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [c, z, bias, k, dk, dc, dz, dbias] = unpack<8>(operands, "compress_keys_backward");
  compress_sizes(c.shape, z.shape, bias.shape, k.shape, any);
  expect_shapes(dk.shape == k.shape && dc.shape == c.shape && dz.shape == z.shape && dbias.shape == bias.shape,
                "compress_keys' gradients are shaped as what they belong to");
  return memory_cost(bytes_of(c, z, bias, k, dk, dc, dz) + 2 * dbias.bytes());
}

void compress_keys_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [c, z, bias, k, dk, dc, dz, dbias] = unpack<8>(operands, "compress_keys_backward");
  const CompressSizes n = compress_sizes(c.shape, z.shape, bias.shape, k.shape, any);
  std::fill_n(dc.f32(), dc.shape.elements(), 0.0F);
  std::fill_n(dz.f32(), dz.shape.elements(), 0.0F);
  std::vector<double> sums(static_cast<std::size_t>(bias.shape.elements()), 0.0);
  for_each_key(
      n, z, bias,
      [&, c = c, k = k, dk = dk, dc = dc, dz = dz](std::int64_t window, std::int64_t b, std::int64_t e, const auto& shares) {
        const double key = k.f32()[n.of_key(window, b, e)], gradient = dk.f32()[n.of_key(window, b, e)];
        std::int32_t place = n.first_place(window);
        for (const double share : shares) {
          const std::int64_t at = n.at(window, place, b, e);
          const double of_score = share * (c.f32()[at] - key) * gradient;
          dc.f32()[at] = static_cast<float>(share * gradient);
          dz.f32()[at] = static_cast<float>(of_score);
          sums[static_cast<std::size_t>(n.of_bias(place++, e))] += of_score;
        }
      });
  for (std::size_t i = 0; i < sums.size(); ++i) dbias.f32()[i] += static_cast<float>(sums[i]);
}

}  // namespace tandem
