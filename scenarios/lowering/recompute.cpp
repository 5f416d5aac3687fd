#include "scenarios/lowering/recompute.h"

#include <memory>

namespace tandem::scenarios {
namespace {

BufferId lower_again(Context& context, Tape& tape, const Module& module, BufferId x) {
  const Phase before = context.phase;
  context.phase = Phase::recompute;
  const BufferId y = module(context, tape, x);
  context.phase = before;
  return y;
}

}  // namespace

BufferId checkpoint(Context& context, Tape& tape, const Module& module, BufferId x) {
  Tape dropped;
  const BufferId y = module(context, dropped, x);
  tape.push([x, module = module](Context& c, BufferId dy) {
    Tape again;
    lower_again(c, again, module, c.kept(x));
    return again.backward(c, dy);
  });
  return y;
}

BufferId recompute_output(Context& context, Tape& tape, const Module& producer, const Module& consumer, BufferId x) {
  Tape dropped;
  const BufferId y = producer(context, dropped, x);
  const auto again = std::make_shared<Tape>();  // filled when the backward reaches the consumer
  tape.push([again](Context& c, BufferId dy) { return again->backward(c, dy); });
  const BufferId z = consumer(context, tape, y);
  tape.push([x, y, again, producer = producer](Context& c, BufferId dz) {
    *again = Tape();
    c.replace(y, lower_again(c, *again, producer, c.kept(x)));
    return dz;
  });
  return z;
}

}  // namespace tandem::scenarios
