#pragma once

#include <cstdint>
#include <vector>

namespace tandem::scenarios {

/// Where the parameters of a bucket lie in it.
struct BucketLayout {
  std::vector<std::int64_t> offsets;  ///< by parameter
  std::int64_t slice = 0;             ///< elements of an owner's
};

/// One after the other, cut into slices wherever that is. `sizes`: elements of each parameter; slices are multiples of
/// `granularity`.
BucketLayout lay_out_flat(const std::vector<std::int64_t>& sizes, std::int64_t owners, std::int64_t granularity);

/// No parameter lies in two slices: the largest first, each goes to the owner that has least, of equal ones the first. A slice is
/// as long as the fullest, and padded beyond what its owner has. As Megatron-Core's layer-wise optimizer lays out whole matrices
/// (megatron/core/optimizer/layer_wise_optimizer.py, compute_full_param_layout).
BucketLayout lay_out_whole(const std::vector<std::int64_t>& sizes, std::int64_t owners, std::int64_t granularity);

/// Parameters that lie whole in slices fill a bucket only when they are so many elements for each owner of the size of the
/// largest: padding is at most a tenth then (the same file, PADDING_FLOOR).
inline constexpr double least_share_of_whole = 0.9;

}  // namespace tandem::scenarios
