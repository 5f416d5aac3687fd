#pragma once

#include <string>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Whether Adafactor keeps means of the tensor's rows and columns in place of one for each element: of a matrix, whatever it is
/// for.
bool is_factored(const std::string& tensor);

/// Lets Adafactor (runtime/ops/adafactor.h) update what this rank owns of all buckets.
///
/// Slices of ZeRO end anywhere in a matrix, and tensor-parallel ranks hold rows or columns of it. So every rank sums what it has,
/// and few numbers are added up: over the owners of slices the sums of all rows and columns in one all-reduce, and the two norms
/// of each tensor in another; over the ranks that share a matrix out the sums along the side that is cut, and the norms. All
/// ranks keep the factors of all matrices that they hold, which ZeRO does not share out: a matrix has m + n of them.
///
/// What several tensor-parallel ranks hold alike each of them adds to a sum, divided by their number.
void update_by_adafactor(Context& context, BufferId norm);

}  // namespace tandem::scenarios
