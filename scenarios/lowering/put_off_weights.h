#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tandem::scenarios {

class Context;

/// The weight gradients of one micro-batch through one model chunk that its backward_input action left to its backward_weight
/// action (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"). Like a `Tape`, it owns nothing but buffer ids; the activations
/// and output gradients that it names live until it is lowered.
class PutOffWeights {
 public:
  using Step = std::function<void(Context&)>;

  void push(std::int16_t layer, Step step) { steps_.emplace_back(layer, std::move(step)); }

  /// Lowers them in the order of the backward, each labelled with the layer it comes from.
  void lower(Context& context) const;

 private:
  std::vector<std::pair<std::int16_t, Step>> steps_;
};

}  // namespace tandem::scenarios
