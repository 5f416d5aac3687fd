#include "runtime/cuda/module/step_load.h"

// An emulated GPU draws no power.

namespace tandem {

StepLoad::StepLoad(int multiprocessors) : queue_(multiprocessors, 0) {}
StepLoad::~StepLoad() = default;
Seconds StepLoad::put(const Queue&, Seconds) const { return 0; }
void StepLoad::put_beside(Seconds) {}
void StepLoad::wait() {}

}  // namespace tandem
