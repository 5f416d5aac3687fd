#pragma once

#include <cmath>

#include "runtime/base/host_device.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// The streams and gates of a row, on host and GPU.
struct HyperSizes {
  static constexpr int most_streams = 8;
  static constexpr int most_iterations = 32;

  std::int64_t tokens = 0, width = 0;  ///< of one stream
  int streams = 0, gates = 0;
  int factors = 0;  ///< before the biases of `base`

  HyperSizes(const Shape& x, const HyperAttributes& attributes)
      : tokens(rows_of(x)),
        width(columns_of(x) / attributes.streams),
        streams(attributes.streams),
        gates(attributes.iterations > 0 ? streams * (streams + 2) : streams),
        factors(attributes.iterations > 0 ? 3 : 1) {
    expect_shapes(columns_of(x) % streams == 0 && streams <= most_streams && attributes.iterations <= most_iterations,
                  "rows hold up to 8 streams, mixed in up to 32 iterations");
  }

  TANDEM_HOST_DEVICE bool mixes() const { return gates > streams; }
  /// Which factor a gate has.
  TANDEM_HOST_DEVICE int factor_of(int gate) const { return gate < streams ? 0 : gate < 2 * streams ? 1 : 2; }
  TANDEM_HOST_DEVICE int write(int stream) const { return streams + stream; }
  TANDEM_HOST_DEVICE int mix(int from, int to) const { return 2 * streams + from * streams + to; }
};

/// Sinkhorn and Knopp's iteration on one token's matrix. What it divided by is kept for the way back: what was before a division
/// is what is after it times the divisor.
template <typename Number>
class SinkhornKnopp {
 public:
  TANDEM_HOST_DEVICE SinkhornKnopp(int streams, int iterations, Number epsilon)
      : n_(streams), divisions_(2 * iterations - 1), epsilon_(epsilon) {}

  /// m [n, n], in place: columns first, then rows and columns in turn.
  TANDEM_HOST_DEVICE void forward(Number* m) {
    for (int division = 0; division < divisions_; ++division) {
      const bool of_rows = division % 2 == 1;
      for (int i = 0; i < n_; ++i) {
        Number sum = epsilon_;
        for (int j = 0; j < n_; ++j) sum += m[place(of_rows, i, j)];
        divisors_[division][i] = sum;
        for (int j = 0; j < n_; ++j) m[place(of_rows, i, j)] /= sum;
      }
    }
  }

  /// m as `forward` left it, dm [n, n] its gradient: afterwards those of what `forward` was given.
  TANDEM_HOST_DEVICE void backward(Number* m, Number* dm) const {
    for (int division = divisions_ - 1; division >= 0; --division) {
      const bool of_rows = division % 2 == 1;
      for (int i = 0; i < n_; ++i) {
        const Number divisor = divisors_[division][i];
        Number mean = 0;
        for (int j = 0; j < n_; ++j) mean += dm[place(of_rows, i, j)] * m[place(of_rows, i, j)];
        for (int j = 0; j < n_; ++j) {
          Number &value = m[place(of_rows, i, j)], &gradient = dm[place(of_rows, i, j)];
          gradient = (gradient - mean) / divisor;
          value *= divisor;
        }
      }
    }
  }

 private:
  int n_, divisions_;
  Number epsilon_;
  Number divisors_[2 * HyperSizes::most_iterations][HyperSizes::most_streams] = {};

  TANDEM_HOST_DEVICE int place(bool of_rows, int i, int j) const { return of_rows ? i * n_ + j : j * n_ + i; }
};

TANDEM_HOST_DEVICE inline double exponential(double x) { return std::exp(x); }
TANDEM_HOST_DEVICE inline float exponential(float x) { return expf(x); }

/// One token's gates and their gradients. `base`: factors, then biases; `u`: logits over the root mean square of the streams.
template <typename Number>
class HyperGates {
 public:
  TANDEM_HOST_DEVICE HyperGates(const HyperSizes& sizes, int iterations, Number epsilon)
      : n_(sizes), epsilon_(epsilon), sinkhorn_(sizes.streams, sizes.mixes() ? iterations : 1, epsilon) {}

  /// argument(g) is a_g u_g + bias_g.
  template <typename Argument>
  TANDEM_HOST_DEVICE void forward(Argument argument, Number* gates) {
    for (int j = 0; j < n_.streams; ++j) gates[j] = sigmoid(argument(j)) + epsilon_;
    if (!n_.mixes()) return;
    for (int j = 0; j < n_.streams; ++j) gates[n_.write(j)] = 2 * sigmoid(argument(n_.write(j)));
    for (int row = 0; row < n_.streams; ++row) softmax_of_row(row, argument, gates);
    sinkhorn_.forward(gates + 2 * n_.streams);
  }

  /// After `forward`, whose `gates` it takes back to what Sinkhorn and Knopp started from: `dgates` become those of the
  /// arguments.
  TANDEM_HOST_DEVICE void backward(Number* gates, Number* dgates) const {
    for (int j = 0; j < n_.streams; ++j) dgates[j] *= (gates[j] - epsilon_) * (1 - gates[j] + epsilon_);
    if (!n_.mixes()) return;
    for (int j = n_.streams; j < 2 * n_.streams; ++j) dgates[j] *= gates[j] * (1 - gates[j] / 2);
    sinkhorn_.backward(gates + 2 * n_.streams, dgates + 2 * n_.streams);
    for (int row = 0; row < n_.streams; ++row) {
      Number mean = 0;
      for (int to = 0; to < n_.streams; ++to) mean += dgates[n_.mix(row, to)] * (gates[n_.mix(row, to)] - epsilon_);
      for (int to = 0; to < n_.streams; ++to) {
        Number& gradient = dgates[n_.mix(row, to)];
        gradient = (gates[n_.mix(row, to)] - epsilon_) * (gradient - mean);
      }
    }
  }

 private:
  HyperSizes n_;
  Number epsilon_;
  SinkhornKnopp<Number> sinkhorn_;

  TANDEM_HOST_DEVICE static Number sigmoid(Number x) { return 1 / (1 + exponential(-x)); }

  template <typename Argument>
  TANDEM_HOST_DEVICE void softmax_of_row(int row, Argument argument, Number* gates) const {
    Number largest = argument(n_.mix(row, 0)), sum = 0;
    for (int to = 1; to < n_.streams; ++to) {
      const Number next = argument(n_.mix(row, to));
      if (next > largest) largest = next;
    }
    for (int to = 0; to < n_.streams; ++to) sum += gates[n_.mix(row, to)] = exponential(argument(n_.mix(row, to)) - largest);
    for (int to = 0; to < n_.streams; ++to) gates[n_.mix(row, to)] = gates[n_.mix(row, to)] / sum + epsilon_;
  }
};

}  // namespace tandem
