#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "studies/step/interval_table.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// What a predicted step time may be off by.
enum class ErrorPart : std::uint8_t {
  products,
  attention,
  other_kernels,
  collectives,
  framework,
  unknown
};
inline constexpr std::size_t error_part_count = 6;
std::string_view name_of(ErrorPart part);
/// Returns the part that kernels of a kind (`KindTime::name`) belong to; nothing for communication.
std::optional<ErrorPart> part_of_kernel(std::string_view kind);

/// What each part adds to the standard error of ln(step time); of parts that have nothing to do with each other.
using ErrorParts = std::array<double, error_part_count>;
/// Returns the root of the summed squares.
double total(const ErrorParts& parts);

/// Nine of ten draws from a normal distribution lie within this many standard deviations of its mean.
inline constexpr double nine_in_ten = 1.645;

/// Returns what the spread of what was fitted lets a step time be off by. With f for a part's share of the step time and s for
/// the relative error of what predicts the part, it is f s:
///
///   part                    s      from
///   products                0.05   bench/accuracy/kernels.csv, 90th percentile over 1.645
///                           and what their speeds are assumed with (`GemmEfficiency::assumed`), root of the summed squares
///   attention               0.04   likewise
///   other kernels           0.10   assumed: bytes are counted, what a kernel achieves of the bandwidth is one number for all
///   of these, scans         0.42   assumed: none was measured, so one in ten is off by a factor of two, ln 2 / 1.645
///   collectives (exposed)   0.20   bench/accuracy/collectives.csv, medians below and above 1 MiB over 0.67
///   waiting (bubble)        as the kernels of the ranks that are waited for
///   framework               0.06   of the whole step; 0.12 with experts, whose load and dispatcher papers rarely print
///
/// These weigh the parts of one step against each other. How far steps are off in truth says the table of intervals.
ErrorParts expected_errors(const StepResult& result);

/// Between which times a step would be measured to take, in nine cases of ten.
struct Interval {
  Seconds low = 0, high = 0;
  ErrorParts parts{};                 ///< their `total` times `nine_in_ten` is ln(high / step time)
  std::string known_class = {};       ///< of the table, whose runs the width comes from; or "site"
  std::size_t runs = 0, sources = 0;  ///< of that class
  bool seen_gpu = true, seen_framework = true;

  double share_of(ErrorPart part) const;  ///< of the squared width; all shares sum to 1
  /// Returns high / step time - 1 if these parts were known exactly.
  double give_or_take_without(std::span<const ErrorPart> parts) const;
};

/// A measurement that would tell parts of the error.
struct Remedy {
  const char* key;   ///< in JSON
  const char* what;  ///< "kernels of this GPU"
  std::span<const ErrorPart> parts;
};
inline constexpr std::array kernel_parts{ErrorPart::products, ErrorPart::attention, ErrorPart::other_kernels};
inline constexpr std::array collective_parts{ErrorPart::collectives};
inline constexpr std::array step_parts{ErrorPart::framework, ErrorPart::unknown};
inline constexpr std::array remedies{Remedy{"kernels", "the kernels of this GPU", kernel_parts},
                                     Remedy{"collectives", "the collectives of this cluster", collective_parts},
                                     Remedy{"steps", "steps like this one", step_parts}};

/// Returns the measurement that would make the interval narrowest.
const Remedy& best_remedy(const Interval& interval);

StepClass class_of(const StepResult& result);

/// What is known of the site that a step was simulated for, and how ln(step time) follows its factors.
struct SiteOfStep {
  Site site;
  double of_kernels = 0;        ///< d ln(step time) / d ln kernels: the share of kernels, and of waiting for those of others
  double of_communication = 0;  ///< the share of exposed communication
  double of_overhead = 0;       ///< 1 / step time

  /// Whether the site's measured steps tell of one with this GPU and this framework.
  bool tells_of(const StepClass& step) const { return site.known() && site.gpu == step.gpu && site.framework == step.framework; }
};
SiteOfStep site_of(const StepResult& result);

/// Returns the interval around `step_time`. Runs like it were off by up to `factor` times their expected errors in nine of ten
/// cases, when their source was left out; what that is more than `nine_in_ten` is `ErrorPart::unknown`, and less makes all parts
/// smaller. A GPU or a framework that no run was measured with adds what such GPUs or frameworks were off by.
///
/// Where `site` tells of the step, its covariances take the place of what sites differ by, and there remains what runs of one
/// source differ by: up to `within` times their expected errors, or `Site::spread` times as much.
///
/// The interval takes the scenario to be that of the run: give fields that are unknown several values, as `tandem validate` does.
Interval interval_around(Seconds step_time, ErrorParts expected, const StepClass& step, const IntervalTable& table,
                         const SiteOfStep& site = {});
Interval step_interval(const StepResult& result);

/// Returns the object `interval_s` of the JSON form.
nlohmann::ordered_json to_json_object(const Interval& interval);

}  // namespace tandem::studies
