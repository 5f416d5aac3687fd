#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/host/memory.h"

namespace tandem {

/// One kind of number of each parameter, row by row: its weight, its gradient, or a state of the optimizer.
struct UnshardedTensor {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};
using UnshardedTensors = std::map<std::string, UnshardedTensor>;  ///< by the name of the parameter

/// What the optimizer reads and writes, put together from the shards of all ranks: each parameter of the unsharded model once.
struct UnshardedState {
  UnshardedTensors weights, gradients, momenta;
  UnshardedTensors variances;  ///< of those parameters that Adam updates
  /// The largest difference of weights or gradients among ranks that hold the same element, relative to the tensor's largest. Of
  /// ranks that hold gradients of their own, such as those of local SGD, it is no error.
  double disagreement = 0;
};

/// Gathers the values that memory holds now. Throws std::runtime_error where an element of a parameter lies on no rank.
UnshardedState gather_unsharded(const HostMemory& memory);

/// The tokens of a global batch.
struct UnshardedTokens {
  std::int64_t sequences = 0, length = 0;
  std::vector<std::int32_t> inputs, labels;  ///< [sequences, length]; label i is the token after input i
};

/// Gathers what the input buffers of all ranks hold. Throws std::runtime_error where a token lies on no rank, or two ranks hold
/// different ones.
UnshardedTokens gather_tokens(const HostMemory& memory);

/// The patches of a global batch's images; no values where there are none.
struct UnshardedPatches {
  std::int64_t positions = 0, width = 0;
  std::map<std::int64_t, std::vector<float>> of_sequence;  ///< [positions, width]
};
UnshardedPatches gather_patches(const HostMemory& memory);

}  // namespace tandem
