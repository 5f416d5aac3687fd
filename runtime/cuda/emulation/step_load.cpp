#include "runtime/cuda/module/step_load.h"

// An emulated GPU draws no power.

namespace tandem {

StepLoad::StepLoad(int multiprocessors) : queue_(multiprocessors, 0) {}
StepLoad::~StepLoad() = default;
void StepLoad::put(const Queue&, Seconds) const {}

}  // namespace tandem
