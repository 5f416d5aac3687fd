#include "runtime/cuda/module/step_load.h"

// An emulated GPU draws no power.

namespace tandem {

Seconds time_of_mean_clocks() { return 0; }

StepLoad::StepLoad(int multiprocessors) : queue_(multiprocessors, 0) {}
StepLoad::~StepLoad() = default;
Seconds StepLoad::put(const Queue&, Seconds) const { return 0; }
void StepLoad::put_one(const Queue&) const {}
Seconds StepLoad::mean() { return 0; }
void StepLoad::put_beside(Seconds) {}
void StepLoad::wait() {}

}  // namespace tandem
