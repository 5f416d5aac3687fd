#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/dag/site.h"
#include "studies/runner/run_progress.h"
#include "studies/step/interval_table.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// A run of the site, before and after.
struct FittedRun {
  std::string id;
  Seconds measured = 0;
  Seconds preset = 0;         ///< predicted by the presets
  Seconds learnt = 0;         ///< predicted for the site
  double error_left_out = 0;  ///< of a site learnt from the other runs: predicted / measured - 1
  double preset_width = 0;    ///< "give or take" of the prediction by the presets
  double learnt_width = 0;    ///< of the prediction for the site

  double preset_error() const { return preset / measured - 1; }
  double learnt_error() const { return learnt / measured - 1; }
};

struct SiteFit {
  Site site;
  std::vector<FittedRun> runs;
  std::vector<std::string> left_out;  ///< rows that say nothing, each with the reason: "b: nothing was measured"
};

/// Learns a site from measured runs: what all its kernels, all its communication and each step take longer than the presets let
/// expect. With T_i(k, c, o) the simulated step of run i, it is the k, c and o that make
///
///   sum over runs of (ln measured_i - ln T_i)^2 / r_i^2 + x' P^-1 x,    x = (ln k, ln c, o)
///
/// least: the most likely ones after the measurements (Gauss-Newton with the derivatives of `SiteOfStep`, simulated anew until
/// they stay), held to the presets by the prior P. Both spreads come from published runs (studies/step/interval_table.csv): r_i
/// is what runs of one source still differ by, `within` times their expected errors; P is what is left of `factor` times the
/// expected errors, by parts, and `overhead`. An overhead is never negative. Where the runs lie further from each other than r_i
/// says, all that is left to doubt is as many times larger (Birge's ratio, `Site::spread`).
///
/// Throws InputError at the row where runs have not all one GPU and one framework, and at the table where none was measured; else
/// what `validate_rows` throws.
SiteFit fit_site(std::span<const RunRow> rows, std::size_t jobs, const OnRunProgress& told = {},
                 const IntervalTable& table = interval_table());

}  // namespace tandem::studies
