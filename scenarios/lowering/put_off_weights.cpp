#include "scenarios/lowering/put_off_weights.h"

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

void PutOffWeights::lower(Context& context) const {
  for (const auto& [layer, step] : steps_) {
    context.layer = layer;
    step(context);
  }
  context.layer = -1;
}

}  // namespace tandem::scenarios
