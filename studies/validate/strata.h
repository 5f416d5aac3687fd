#pragma once

#include <span>
#include <string>
#include <vector>

#include "studies/validate/score.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// The score of the rows that have something in common.
struct Stratum {
  std::string set;   ///< "all" rows, or those marked "core"
  std::string by;    ///< "all", "kind", "gpu", "gpu and kind", "framework", "source"
  std::string name;  ///< "dense", "h100-sxm-80gb moe", ...
  Score score;
};

/// Returns the strata of the rows that have an error, in the order of `by` above and then by name. The set "core" is present
/// where some rows, not all, are marked.
std::vector<Stratum> strata_of(std::span<const ValidatedRow> rows);

}  // namespace tandem::studies
