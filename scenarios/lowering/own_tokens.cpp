#include "scenarios/lowering/own_tokens.h"

namespace tandem::scenarios {
namespace {

bool have_own(const Context& context) { return context.sizes.tp == 1 || context.sizes.sequence_parallel; }

}  // namespace

BufferId own_tokens(Context& context, BufferId whole) {
  return have_own(context) ? whole : context.shard_of(whole, context.sizes.tp_rank);
}

BufferId all_tokens(Context& context, BufferId own, std::string_view name) {
  if (have_own(context)) return own;
  Shape shape = context.shape_of(own);
  shape.dims[0] *= context.sizes.tp;
  const BufferId whole = context.gathered(shape, context.type_of(own));
  context.collective(OpKind::all_gather, Slot::tp, Stream::tp, name, own, whole);
  return whole;
}

}  // namespace tandem::scenarios
