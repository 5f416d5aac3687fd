#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::scenarios {

class Context;

/// What a forward pass left to do backward. Each step lowers the backward of one operation: it takes the gradient of the
/// operation's output and returns the gradient of its input. The steps own nothing but buffer ids, so a tape may be dropped
/// (recompute) and an operation lowered again.
class Tape {
 public:
  using Step = std::function<BufferId(Context&, BufferId output_gradient)>;

  void push(Step step) {
    constexpr std::size_t usual = 4;
    if (steps_.empty()) steps_.reserve(usual);
    steps_.push_back(std::move(step));
  }

  BufferId backward(Context& context, BufferId output_gradient) const {
    BufferId gradient = output_gradient;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) gradient = (*step)(context, gradient);
    return gradient;
  }

 private:
  std::vector<Step> steps_;
};

/// The forward of a module: lowers it for input `x`, leaves its backward on the tape, returns its output.
using Module = std::function<BufferId(Context&, Tape&, BufferId x)>;

}  // namespace tandem::scenarios
