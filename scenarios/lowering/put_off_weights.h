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

  /// `waits_for_exchange`: put off until tokens are on their way, no longer (`training.overlap.ep`).
  explicit PutOffWeights(bool waits_for_exchange = false) : waits_for_exchange_(waits_for_exchange) {}

  bool waits_for_exchange() const { return waits_for_exchange_; }
  void push(std::int16_t layer, Step step) { steps_.emplace_back(layer, std::move(step)); }

  PutOffWeights take() { return std::exchange(*this, PutOffWeights(waits_for_exchange_)); }

  /// Lowers them in the order of the backward, each labelled with the layer it comes from.
  void lower(Context& context) const;

 private:
  bool waits_for_exchange_;
  std::vector<std::pair<std::int16_t, Step>> steps_;
};

}  // namespace tandem::scenarios
