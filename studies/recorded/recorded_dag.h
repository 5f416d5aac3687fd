#pragma once

#include <vector>

#include "studies/recorded/recorded_run.h"
#include "topology/cluster_spec.h"

namespace tandem::studies {

/// A recorded step as a DAG on a cluster.
struct RecordedDag {
  Dag dag;
  std::vector<RankIndex> class_of;  ///< by world rank: the rank of the DAG that stands for it
};

/// Lays the groups of a recorded step on the links of `cluster` (world rank r on its r-th GPU), folds ranks, groups and links
/// that are alike, and makes a task of each recorded one, of one rank of each class or of all.
///
/// - Kernels take the time that was recorded, whatever runs beside them and whichever GPU the cluster has: they stand as measured
///   kernels of its device (`Device::measured`). What ran on the host is a task of the stream `host`.
/// - Exchanges take what the links and NCCL's choice of algorithm make of them, beside others.
/// - The kernels of a rank run one after the other, so do tasks on the host, copies in one direction, and exchanges of a stream:
///   in an order that no rank waits for another in a circle by.
///
/// Throws InputError where the recorded tasks wait for each other, or where the cluster's links do not lead from one member of a
/// group to the next.
RecordedDag lay_recorded(const RecordedRun& run, const ClusterSpec& cluster, bool folded);

}  // namespace tandem::studies
