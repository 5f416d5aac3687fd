#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// What a simulated step spends its time on, cut as publications cut measured ones. Seconds by name.
using PartTimes = std::map<std::string, Seconds>;

/// The step of the first rank: "forwards alone", "pairs" of a forward and a backward side by side, "backwards alone", "weight
/// gradients alone", "bubble", "optimizer", which add up to the "step". A pass or pair lasts from its first kernel to its last;
/// the optimizer from the last pass to the end, gradients' and weights' communication included.
PartTimes phases_of_step(const Dag& dag, const Timeline& timeline);

/// The kernels and exchanges of a forward and the backward beside it, on the fifth stage and a quarter of the way through its
/// micro-batches: the sum of "all kernels", of "products", "attention forward", "attention backward" and "other kernels" among
/// them, of "dispatch", "combine" and both as "exchanges". What ranks tell each other of it beforehand ("notifying") is none of
/// Tandem's.
PartTimes kernels_of_pair(const Dag& dag, const Timeline& timeline);

/// One layer and micro-batch of the first rank: "forward", "backward" with what it recomputes, and "both". Each lasts from its
/// first kernel to the first of the layer that comes next, so communication that nothing hides is part of it; the mean over the
/// layers between the first and the last.
PartTimes passes_of_layer(const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
