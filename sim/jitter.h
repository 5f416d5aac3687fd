#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/random_numbers.h"
#include "sim/simulate.h"

namespace tandem::sim {

/// Says how much times vary from step to step: coefficients of variation (standard deviation over mean).
///
/// All are lognormal with mean 1: times are positive and what disturbs them multiplies, so that the tail is on the slow side; and
/// a sum of lognormal times is again nearly lognormal, with the mean and the variance that add up (Fenton 1960, IRE Transactions
/// on Communications Systems 8(1)), which the maximum over ranks that are not simulated needs (see arrivals.h).
struct Variation {
  double kernel = 0;         ///< of each kernel by itself
  double rank = 0;           ///< of a rank's speed, the same for all its kernels in a step
  double communication = 0;  ///< of each collective or transfer by itself

  bool is_none() const { return kernel == 0 && rank == 0 && communication == 0; }
};

/// exp(s z - s^2 / 2) with s^2 = log(1 + c^2): lognormal of mean 1 and coefficient of variation c, where z is standard normal.
class Lognormal {
 public:
  explicit Lognormal(double coefficient)
      : is_one_(coefficient == 0), variance_(std::log1p(coefficient * coefficient)), deviation_(std::sqrt(variance_)) {}
  double operator()(double z) const { return is_one_ ? 1 : std::exp(deviation_ * z - variance_ / 2); }

 private:
  bool is_one_;
  double variance_, deviation_;
};
inline double lognormal(double coefficient, double z) { return Lognormal(coefficient)(z); }

/// The random numbers of one step: factors of times, the same however many steps are drawn at once and in which order.
class JitterDraw {
 public:
  JitterDraw(const Variation& variation, std::uint64_t seed, std::uint64_t draw);

  const Variation& variation() const { return variation_; }
  double kernel(std::uint32_t world_rank, TaskId task) const;
  double rank(std::uint32_t world_rank) const;
  double communication(std::uint32_t world_rank, TaskId task) const;
  /// Returns the key of the random numbers of members that are not simulated.
  RandomKey peers(std::uint32_t world_rank, CommunicatorId communicator) const;

 private:
  Variation variation_;
  RandomKey key_;
  RandomKey kernels_, communication_;
  Lognormal kernel_factor_, communication_factor_;
};

/// Pilots are drawn in rounds, of which each knows what those before tell: two rounds of 16 miss less of the mean excess of
/// folded pipelines than one of 64 does (jitter_test.cpp in tests/end_to_end).
inline constexpr std::size_t pilot_rounds = 2, pilots_of_round = 16;

/// Steps to draw: from draw 0 on, `jobs` simulated at a time, in children. `ended` is told how many have ended.
struct Draws {
  std::uint64_t seed = 1;
  std::size_t count = 0;
  std::size_t jobs = 1;
  std::function<void(std::size_t)> ended = {};
  const Timeline* undisturbed = nullptr;  ///< what `simulate` returns of the DAG, where that is known
};

/// Returns step times with jitter, one for each draw. For a multi-step DAG, the times are those of all its steps together. A
/// folded DAG is drawn `pilot_rounds * pilots_of_round` times before.
std::vector<Seconds> drawn_makespans(const Dag& dag, const Variation& variation, const Draws& draws);

/// Returns when each lowered rank ends its last task.
std::vector<Seconds> ends_of_ranks(const Dag& dag, const Timeline& timeline);

/// Returns the same of steps with jitter, by draw. A rank of a folded DAG stands for many; its end is that of one of them, not of
/// the last.
std::vector<std::vector<Seconds>> drawn_ends(const Dag& dag, const Variation& variation, const Draws& draws);

/// Returns the time below which the share `p` of the sorted `times` lies, between neighbours by their distance (type 7 of Hyndman
/// and Fan 1996, The American Statistician 50(4), the default of R and NumPy). Needs at least one time.
Seconds percentile(std::span<const Seconds> times, double p);

}  // namespace tandem::sim
