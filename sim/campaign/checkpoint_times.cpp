#include "sim/campaign/checkpoint_times.h"

namespace tandem::sim {

CheckpointTimes checkpoint_times(bool asynchronous, Bytes bytes, Bytes fullest_gpu, const CheckpointStorage& storage) {
  const Seconds written = static_cast<double>(bytes) / storage.write;
  const Seconds load = static_cast<double>(bytes) / storage.read;
  if (!asynchronous) return {.stall = written, .load = load};
  return {.stall = static_cast<double>(fullest_gpu) / storage.copy, .write = written, .load = load};
}

}  // namespace tandem::sim
