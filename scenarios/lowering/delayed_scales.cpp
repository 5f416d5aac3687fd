#include "scenarios/lowering/delayed_scales.h"

#include <utility>

namespace tandem::scenarios {

void reduce_amax(Context& context) {
  const std::int64_t casts = std::exchange(context.casts, 0);
  if (casts == 0 || !context.scenario.reduces_amax()) return;
  const BufferId amax = context.activation(Shape(casts), DType::f32), scales = context.activation(Shape(casts), DType::f32);
  context.kernel(OpKind::fill, ScaleAttributes{0}, "amax", {}, {amax});
  if (context.communicator(Slot::amax) != no_id)
    context.collective(OpKind::all_reduce, Slot::amax, Stream::tp, "amax", amax, amax, Reduction::max);
  context.kernel(OpKind::scale, ScaleAttributes{1}, "scales", {amax}, {scales});
}

}  // namespace tandem::scenarios
