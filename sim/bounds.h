#pragma once

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/kernel_times.h"
#include "sim/serial_replay.h"

namespace tandem::sim {

/// Returns the time below which no step of this DAG can be, with perfect overlap at the devices' peaks: the largest of
///   for each rank, its kernels one after the other at the roofline of full peaks, or as measured where that is faster; and what
///   its host computes;
///   for each link, all its bytes at its capacity;
///   for each collective, its bytes at the rate that its protocol allows.
/// Each as often as the timeline says, where one is given.
Seconds lower_bound(const Dag& dag, const KernelTimes& times, const Timeline& timeline = {});
inline Seconds lower_bound(const Dag& dag, const Timeline& timeline = {}) { return lower_bound(dag, KernelTimes(dag), timeline); }

/// Returns the time of the same work with nothing overlapping on a rank: each rank does its tasks one at a time, in the order in
/// which they started, each as long as it took; or, where `alone` is given and the timeline was simulated, each kernel as long as
/// it takes with nothing beside it (contention.h). It is never below the step time: one after the other in this order, no task
/// starts before it started in the timeline. By induction over that order: until a kernel's successor starts, its rank has done
/// the kernel and all communication that ran beside it. That is as long as the kernel took, for a kernel loses no more than the
/// time that communication ran beside it. Where kernels wait for the CPU that issues them, which has no place in this, it is the
/// step time at least.
///
/// A folded rank that stands for both ends of a pair is busy with one message after the other, which it sends and receives.
/// A stretch of the timeline that repeats itself is replayed as often. It is infinite where that cannot be: where a task of the
/// stretch waits on another rank for one of the stretch before.
/// `replay`: the DAG's, for whoever has it.
Seconds upper_bound(const Dag& dag, SerialReplay replay, const Timeline& timeline, const KernelTimes* alone = nullptr);
inline Seconds upper_bound(const Dag& dag, const Timeline& timeline, const KernelTimes* alone = nullptr) {
  return upper_bound(dag, SerialReplay(dag), timeline, alone);
}

}  // namespace tandem::sim
