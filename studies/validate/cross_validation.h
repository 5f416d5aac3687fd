#pragma once

#include <span>
#include <string>
#include <vector>

#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// Tells how much of the accuracy is owed to having seen the rows. The speed of each GPU model is fitted twice: to all sources,
/// and for each source to the others alone, which then predict that source. Both numbers are medians of |error| to which each
/// source contributes the same weight.
///
/// The speed is the one number that is fitted to whole steps (`sustained` in scenarios/presets/gpus, which products' times, and
/// so nearly whole steps, go with); here it multiplies step times. The fitted speed is Huber's location of
/// ln(predicted / measured): the mean, except that values further off than `outlier` weigh less, as a source that is off for a
/// reason of its own says nothing of the GPU.
struct CrossValidation {
  std::string name;  ///< "all", "dense", "moe"
  double fitted = 0;
  double left_out = 0;
};

/// Returns nothing for rows of a single source.
std::vector<CrossValidation> cross_validate(std::span<const ValidatedRow> rows);

}  // namespace tandem::studies
