#pragma once

#include "runtime/base/units.h"

namespace tandem::sim {

/// Says how long a checkpoint stops the training, and for how long after that a failure still loses it.
struct CheckpointTimes {
  Seconds stall = 0;
  Seconds write = 0;  ///< beside the training, until it is durable
  Seconds load = 0;   ///< of a restart
};

/// The storage that checkpoints go to.
struct CheckpointStorage {
  BytesPerSecond write = 0, read = 0;  ///< of the whole job
  BytesPerSecond copy = 0;             ///< of one GPU, to the memory of its host
};

/// `bytes`: the checkpoint, each number of it written once; `fullest_gpu`: of it the most that one GPU holds.
///
///                  stall               write           load
///   synchronous    bytes / write       0               bytes / read
///   asynchronous   fullest / copy      bytes / write   bytes / read
CheckpointTimes checkpoint_times(bool asynchronous, Bytes bytes, Bytes fullest_gpu, const CheckpointStorage& storage);

}  // namespace tandem::sim
