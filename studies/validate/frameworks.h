#pragma once

#include <span>
#include <string_view>

#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// What a framework does when a run does not say: values of columns, the likeliest first.
struct FrameworkDefaults {
  std::string_view name;
  // Values with spaces between them.
  std::string_view zero;
  std::string_view sp;
  std::string_view recompute;                ///< of a run that fits with it
  std::string_view recompute_to_fit = {};    ///< of one that does not
  std::string_view selective = "selective";  ///< what its own "selective" recomputation is here
  bool interleaves = false;                  ///< has a schedule with several model chunks per stage
  bool experts_split_like_tp = false;        ///< a blank etp is tp
  bool always_interleaves = false;
  bool compiles = false;  ///< its preset knows what torch.compile makes of it
};

/// Those of the run's framework, or of a generic one.
const FrameworkDefaults& framework_of(const RunRow& row);

}  // namespace tandem::studies
