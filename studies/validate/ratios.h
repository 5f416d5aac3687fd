#pragma once

#include <span>
#include <string>
#include <vector>

#include "studies/validate/runs_file.h"
#include "studies/validate/score.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// The step times of two runs of one source that differ in one thing only, one divided by the other. What both have in common,
/// such as the kernels of their time, drops out: a planner who compares mappings depends on this ratio.
struct Ratio {
  std::string axis;  ///< by its name below
  std::string source;
  std::string from, to;  ///< ids
  double measured = 0;   ///< step time of `to` over that of `from`
  double predicted = 0;
  double error() const { return predicted / measured - 1; }
};

/// Compares the runs that are alike but for one axis, in the table's order, each with the one before it. An axis is a column and
/// the columns that follow when it changes:
///   scaling      n_gpus; dp, global_batch    schedule   vpp or schedule     micro-batch  micro_batch
///   batch        global_batch                sequence   sequence; global_batch
///   tp           tp; sp, dp                  cp         cp; dp                  pp   pp; dp, vpp, schedule
///   recompute    recompute; sp               precision  precision; fp8_recipe
/// Where dp follows and the batch does not, the batch of a step is the same in both runs, or that of a replica.
/// `validated` belongs to `rows`, in the same order.
std::vector<Ratio> ratios_of(std::span<const RunRow> rows, std::span<const ValidatedRow> validated);

/// The score of the ratios of one axis, each source weighing the same.
struct RatioScore {
  std::string axis;
  Score score;
};
std::vector<RatioScore> score_ratios(std::span<const Ratio> ratios);

}  // namespace tandem::studies
