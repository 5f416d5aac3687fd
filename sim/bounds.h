#pragma once

#include "runtime/dag.h"
#include "runtime/timeline.h"

namespace tandem {

/// No step of this DAG can be faster: perfect overlap at the devices' peaks. The largest of
///   for each rank, its kernels one after the other at the roofline of full peaks, or as measured where that is faster;
///   for each link, all its bytes at its capacity;
///   for each collective, its bytes at the rate that its protocol allows.
Seconds lower_bound(const Dag& dag);

/// The same work with nothing overlapping on a rank: each rank does its tasks one at a time, in the order in which they started,
/// each as long as it took. Starting from the simulated order this only adds waiting, so it is never below the step time.
Seconds upper_bound(const Dag& dag, const Timeline& timeline);

}  // namespace tandem
