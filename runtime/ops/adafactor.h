#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "runtime/base/host_device.h"
#include "runtime/ops/operation.h"

namespace tandem {

// Adafactor (Shazeer and Stern 2018, arXiv 1804.04235), as torch.optim.Adafactor has it. Of a matrix it keeps a mean square for
// each row and each column, R and C; of a vector one for each element, V. With g the clipped gradient, a = step^beta2_decay, e
// the epsilon of fp32, and n the elements of the tensor:
//
//   R += a (mean of g^2 over columns - R),   C += a (mean of g^2 over rows - C),   V += a (g^2 - V)
//   estimate = R C / max(e, mean R), or V;   u = g / sqrt(max(e^2, estimate))
//   rate = min(learning_rate, 1 / sqrt(step)) max(least_scale, sqrt(sum w^2 / n)) / max(1, sqrt(sum u^2 / n) / threshold)
//   w = w - learning_rate weight_decay w - rate u
//
// Each operation takes all tensors of a bucket at once, of which it sees the elements in a slice [n]. What it sums it sums over
// these alone; lowering adds up the sums of all who hold the others (scenarios/lowering/adafactor.h). The mean of R is that of C,
// too: it is taken of those that are all here.

/// adafactor_sums: grad [n], norm_square [1]; sums of g^2 [AdafactorLayout::sums].
CostFunction adafactor_sums_cost;
HostKernel adafactor_sums_host;

/// adafactor_factors: sums; factors [AdafactorLayout::factors], updated: R and C as the sums lie, and behind them the mean of
/// each tensor.
CostFunction adafactor_factors_cost;
HostKernel adafactor_factors_host;

/// adafactor_variance: grad [n], norm_square [1]; V [n], updated.
CostFunction adafactor_variance_cost;
HostKernel adafactor_variance_host;

/// adafactor_norms: grad [n], norm_square [1], factors or V, master [n]; by tensor the sums of u^2 and w^2 [2 tensors].
CostFunction adafactor_norms_cost;
HostKernel adafactor_norms_host;

/// adafactor_update: grad [n], norm_square [1], factors or V, sums of u^2 and w^2; param [n]; master [n], updated.
CostFunction adafactor_update_cost;
HostKernel adafactor_update_host;

/// Where sums and factors lie: first those that ranks who share matrices out add up (columns of matrices cut by rows, rows of
/// those cut by columns), piece by piece, then all others.
struct AdafactorLayout {
  struct Place {
    std::int64_t rows = 0, columns = 0;  ///< where the piece's first ones lie
  };
  explicit AdafactorLayout(const AdafactorAttributes& attributes);
  std::vector<Place> places;  ///< by piece
  std::int64_t shared = 0;    ///< sums that are added up
  std::int64_t sums = 0;
  std::int64_t tensors = 0;
  std::int64_t factors() const { return sums + tensors; }
};

/// The part of a piece that lies in a slice: its elements [begin, end), row by row, from `at` on in the slice.
struct AdafactorPart {
  std::int64_t begin = 0, end = 0, at = 0;
};
AdafactorPart part_in_slice(const AdafactorAttributes& attributes, const AdafactorPiece& piece, std::int64_t slice);

inline constexpr float adafactor_epsilon = 1.1920929e-7F;  // torch.finfo(torch.float32).eps

TANDEM_HOST_DEVICE inline float adafactor_estimate(float row, float column, float mean) {
  return row * column / (mean < adafactor_epsilon ? adafactor_epsilon : mean);
}

TANDEM_HOST_DEVICE inline float adafactor_direction(float gradient, float estimate) {
  constexpr float least = adafactor_epsilon * adafactor_epsilon;
  return gradient / std::sqrt(estimate < least ? least : estimate);
}

/// What R, C and V move towards the step's squares by: `a` above.
inline float adafactor_weight(const AdafactorAttributes& attributes) {
  return std::pow(static_cast<float>(attributes.step), attributes.beta2_decay);
}

/// What a step of all tensors has in common.
struct AdafactorRates {
  float relative_step, decay, least_scale, threshold, clip_norm;
  explicit AdafactorRates(const AdafactorAttributes& a)
      : relative_step(std::min(a.learning_rate, 1 / std::sqrt(static_cast<float>(a.step)))),
        decay(a.learning_rate * a.weight_decay),
        least_scale(a.least_scale),
        threshold(a.threshold),
        clip_norm(a.clip_norm) {}
};

/// The rate of a tensor of so many elements, whose squares of u and w are {sum, sum}.
TANDEM_HOST_DEVICE inline float adafactor_rate(const AdafactorRates& rates, const float* squares, float elements) {
  const float clip = std::sqrt(squares[0] / elements) / rates.threshold, scale = std::sqrt(squares[1] / elements);
  const float rate = rates.relative_step * (scale < rates.least_scale ? rates.least_scale : scale);
  return clip > 1.0F ? rate / clip : rate;
}

}  // namespace tandem
