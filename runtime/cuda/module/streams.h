#pragma once

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/gpu_memory.h"
#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// A CUDA event. The date of a `timed` one can be asked for.
class Event {
 public:
  explicit Event(bool timed) : timed_(timed) {
    check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreate");
  }
  Event(Event&& other) noexcept : event_(other.event_), timed_(other.timed_) { other.event_ = nullptr; }
  Event(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  /// A timed event keeps its date also when it is recorded by a graph that was captured.
  void record(const Queue& queue, bool captured) {
    const unsigned flags = timed_ && captured ? cudaEventRecordExternal : cudaEventRecordDefault;
    check(cudaEventRecordWithFlags(event_, queue.stream, flags), "cudaEventRecord");
  }
  void awaited_by(const Queue& queue) const { check(cudaStreamWaitEvent(queue.stream, event_, 0), "cudaStreamWaitEvent"); }
  bool has_happened() const { return cudaEventQuery(event_) == cudaSuccess; }
  /// Returns the seconds since `begin`, which is timed, too.
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
  bool timed_;
};

/// A stream with its scratch.
class OwnedQueue {
 public:
  OwnedQueue(int multiprocessors, std::size_t scratch_bytes) : scratch_(scratch_bytes) {
    queue_ = {.stream = nullptr, .multiprocessors = multiprocessors, .scratch = scratch_.data(), .scratch_bytes = scratch_bytes};
    check(cudaStreamCreateWithFlags(&queue_.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  OwnedQueue(const OwnedQueue&) = delete;
  ~OwnedQueue() { cudaStreamDestroy(queue_.stream); }
  Queue& get() { return queue_; }

 private:
  GpuMemory scratch_;
  Queue queue_;
};

}  // namespace tandem
