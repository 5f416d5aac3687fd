#include "studies/calibrate/site_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "studies/step/step_interval.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {
namespace {

constexpr std::size_t factors = 3;  ///< ln kernels, ln communication, overhead
using Vector = std::array<double, factors>;
using Matrix = std::array<Vector, factors>;

/// Inverts a symmetric matrix that is positive definite, by Gauss-Jordan elimination. A row and column of zeros, a factor that is
/// held where it is, stays zero.
Matrix inverse(Matrix a) {
  Matrix inverted{};
  for (std::size_t i = 0; i < factors; ++i) inverted[i][i] = a[i][i] > 0 ? 1 : 0;
  for (std::size_t i = 0; i < factors; ++i) {
    if (a[i][i] <= 0) continue;
    const double pivot = a[i][i];
    for (std::size_t j = 0; j < factors; ++j) {
      a[i][j] /= pivot;
      inverted[i][j] /= pivot;
    }
    for (std::size_t row = 0; row < factors; ++row) {
      if (row == i) continue;
      const double times = a[row][i];
      for (std::size_t j = 0; j < factors; ++j) {
        a[row][j] -= times * a[i][j];
        inverted[row][j] -= times * inverted[i][j];
      }
    }
  }
  return inverted;
}

Vector product(const Matrix& a, const Vector& x) {
  Vector y{};
  for (std::size_t i = 0; i < factors; ++i)
    for (std::size_t j = 0; j < factors; ++j) y[i] += a[i][j] * x[j];
  return y;
}

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < factors; ++i) sum += a[i] * b[i];
  return sum;
}

/// One measured run, linear around the site that it was simulated for.
struct Observation {
  double residual = 0;  ///< ln measured - ln simulated
  Vector slope{};       ///< of ln simulated
  double noise = 0;     ///< standard deviation of the residual at the true site
};

struct Posterior {
  Vector mean{};
  Matrix covariance{};
};

/// Of observations that are linear around `at`. A factor that `held` names keeps its place.
Posterior posterior(std::span<const Observation> observations, const Vector& at, const Matrix& precision,
                    const std::array<bool, factors>& held) {
  Matrix information = precision;
  Vector gradient = product(precision, at);
  for (double& value : gradient) value = -value;
  for (const Observation& one : observations)
    for (std::size_t i = 0; i < factors; ++i) {
      gradient[i] += one.slope[i] * one.residual / (one.noise * one.noise);
      for (std::size_t j = 0; j < factors; ++j) information[i][j] += one.slope[i] * one.slope[j] / (one.noise * one.noise);
    }
  for (std::size_t i = 0; i < factors; ++i)
    for (std::size_t j = 0; j < factors; ++j)
      if (held[i] || held[j]) information[i][j] = 0;
  Posterior result{.mean = {}, .covariance = inverse(information)};
  const Vector step = product(result.covariance, gradient);
  for (std::size_t i = 0; i < factors; ++i) result.mean[i] = at[i] + step[i];
  return result;
}

/// The same with an overhead of at least 0.
Posterior possible_posterior(std::span<const Observation> observations, Vector at, const Matrix& precision) {
  const Posterior free = posterior(observations, at, precision, {});
  if (free.mean[2] >= 0) return free;
  std::vector<Observation> moved(observations.begin(), observations.end());
  for (Observation& one : moved) one.residual += one.slope[2] * at[2];
  at[2] = 0;
  return posterior(moved, at, precision, {false, false, true});
}

double squared(double x) { return x * x; }

double of(const ErrorParts& parts, ErrorPart part) { return parts[static_cast<std::size_t>(part)]; }

/// What sites differ by: the mean over the runs, as each has other shares.
Matrix prior_of(const std::vector<const ValidatedRow*>& rows, const IntervalTable& table) {
  double kernels = 0, communication = 0, all = 0;
  std::size_t with_communication = 0;
  for (const ValidatedRow* row : rows) {
    const Prediction& prediction = *row->prediction;
    const auto& known = table.narrowest(class_of(prediction.typical.step)).second;
    const double scale = (squared(known.factor) - squared(known.within)) / squared(nine_in_ten);
    const SiteOfStep shares = site_of(prediction.typical.step);
    double of_kernels = 0;
    for (const ErrorPart part : kernel_parts) of_kernels += squared(of(prediction.expected, part));
    kernels += scale * of_kernels / squared(shares.of_kernels);
    all += scale * squared(of(prediction.expected, ErrorPart::framework));
    if (shares.of_communication <= 0) continue;
    communication += scale * squared(of(prediction.expected, ErrorPart::collectives) / shares.of_communication);
    ++with_communication;
  }
  const auto runs = static_cast<double>(rows.size());
  kernels /= runs;
  all /= runs;
  if (with_communication > 0) communication /= static_cast<double>(with_communication);
  Matrix prior{};
  prior[0] = {kernels + all, all, 0};
  prior[1] = {all, communication + all, 0};
  prior[2] = {0, 0, squared(table.overhead)};
  return prior;
}

Observation observation_of(const ValidatedRow& row, const IntervalTable& table) {
  const StepResult& step = row.prediction->typical.step;
  const SiteOfStep shares = site_of(step);
  const double within = table.narrowest(class_of(step)).second.within / nine_in_ten;
  return {.residual = std::log(*row.measured / row.prediction->step_time),
          .slope = {shares.of_kernels, shares.of_communication, shares.of_overhead},
          .noise = within * total(row.prediction->expected)};
}

/// The root of the mean square of residuals over their noise, 1 at least.
double spread_of(std::span<const Observation> observations) {
  double squares = 0;
  for (const Observation& one : observations) squares += squared(one.residual / one.noise);
  return std::max(1.0, std::sqrt(squares / static_cast<double>(observations.size())));
}

Site site_at(const Posterior& posterior, const std::vector<const ValidatedRow*>& rows, double spread = 1) {
  const StepResult& step = rows.front()->prediction->typical.step;
  const Matrix& c = posterior.covariance;
  const double more = squared(spread);
  return {.runs = static_cast<std::int64_t>(rows.size()),
          .gpu = step.gpu,
          .framework = step.framework,
          .kernels = std::exp(posterior.mean[0]),
          .communication = std::exp(posterior.mean[1]),
          .overhead = std::max(0.0, posterior.mean[2]),
          .spread = spread,
          .covariance = {more * c[0][0], more * c[0][1], more * c[0][2], more * c[1][1], more * c[1][2], more * c[2][2]}};
}

void expect_one_site(std::span<const RunRow> rows, const std::vector<const ValidatedRow*>& usable,
                     const std::vector<std::size_t>& places) {
  for (std::size_t i = 1; i < usable.size(); ++i) {
    const StepResult &first = usable.front()->prediction->typical.step, &other = usable[i]->prediction->typical.step;
    const auto compare = [&](const char* column, const std::string& one, const std::string& another) {
      if (one != another)
        throw InputError(rows[places[i]].place(column), "the run " + usable[i]->id + " has the " + column + " " + another +
                                                            ", and " + usable.front()->id + " has " + one +
                                                            "; expected runs of one site: give those of each a table of its own");
    };
    compare("gpu", first.gpu, other.gpu);
    compare("framework", first.framework, other.framework);
  }
}

/// A run that presets could simulate can still fail for the site: its process was killed, or memory ran out.
void expect_all_simulated(const std::vector<ValidatedRow>& rows) {
  for (const ValidatedRow& row : rows)
    if (!row.error()) throw std::runtime_error("the run " + row.id + " could not be simulated again for the site: " + row.reason);
}

double width_of(const ValidatedRow& row) { return row.prediction->interval.high / row.prediction->step_time - 1; }

/// Rows that were measured and simulated, and the reasons of the others.
struct Usable {
  std::vector<const ValidatedRow*> rows;
  std::vector<std::size_t> places;
  std::vector<std::string> left_out;
};

Usable usable_of(const std::vector<ValidatedRow>& rows) {
  Usable usable;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].error()) {
      usable.rows.push_back(&rows[i]);
      usable.places.push_back(i);
    } else {
      usable.left_out.push_back(rows[i].id + ": " + (rows[i].prediction ? "nothing was measured" : rows[i].reason));
    }
  }
  return usable;
}

}  // namespace

SiteFit fit_site(std::span<const RunRow> rows, std::size_t jobs, const OnRunProgress& told, const IntervalTable& table) {
  const std::vector<ValidatedRow> by_presets = validate_rows(rows, jobs, told);
  const Usable usable = usable_of(by_presets);
  if (usable.rows.empty())
    throw InputError({.file = rows.front().place().file},
                     "no run was measured and could be simulated, expected one at least; " + usable.left_out.front());
  expect_one_site(rows, usable.rows, usable.places);
  std::vector<RunRow> measured;
  for (const std::size_t place : usable.places) measured.push_back(rows[place]);

  const Matrix precision = inverse(prior_of(usable.rows, table));
  constexpr int most_rounds = 8;
  constexpr double near = 1e-4;  // of a step
  Vector at{};
  std::vector<ValidatedRow> simulated;
  std::vector<Observation> observations;
  for (const ValidatedRow* row : usable.rows) observations.push_back(observation_of(*row, table));
  Posterior found;
  for (int round = 0; round < most_rounds; ++round) {
    found = possible_posterior(observations, at, precision);
    double moved = 0;
    for (const Observation& one : observations) {
      Vector step{};
      for (std::size_t i = 0; i < factors; ++i) step[i] = found.mean[i] - at[i];
      moved = std::max(moved, std::abs(product(one.slope, step)));
    }
    at = found.mean;
    simulated = validate_rows(measured, jobs, told, site_at(found, usable.rows));
    expect_all_simulated(simulated);
    for (std::size_t i = 0; i < simulated.size(); ++i) observations[i] = observation_of(simulated[i], table);
    if (moved < near) break;
  }

  SiteFit fit{.site = site_at(found, usable.rows, spread_of(observations)), .runs = {}, .left_out = usable.left_out};
  for (ValidatedRow& row : simulated) {
    Prediction& prediction = *row.prediction;
    SiteOfStep site = site_of(prediction.typical.step);
    site.site = fit.site;
    prediction.interval =
        interval_around(prediction.step_time, prediction.expected, class_of(prediction.typical.step), table, site);
  }
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    std::vector<Observation> others = observations;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    Vector step = possible_posterior(others, at, precision).mean;
    for (std::size_t j = 0; j < factors; ++j) step[j] -= at[j];
    fit.runs.push_back({.id = simulated[i].id,
                        .measured = *simulated[i].measured,
                        .preset = usable.rows[i]->prediction->step_time,
                        .learnt = simulated[i].prediction->step_time,
                        .error_left_out = std::expm1(product(observations[i].slope, step) - observations[i].residual),
                        .preset_width = width_of(*usable.rows[i]),
                        .learnt_width = width_of(simulated[i])});
  }
  return fit;
}

}  // namespace tandem::studies
