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
  bool has_happened() const { return succeeds(cudaEventQuery(event_)); }
  /// Returns whether it happened after `since`, which has been recorded; both are timed.
  bool has_happened_since(const Event& since) const {
    float milliseconds = 0;
    return has_happened() && since.has_happened() && succeeds(cudaEventElapsedTime(&milliseconds, since.event_, event_)) &&
           milliseconds >= 0;
  }
  /// Returns the seconds since `begin`, which is timed, too.
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
  bool timed_;

  /// What an event that was never recorded, or by a graph alone, answers is no error of whoever calls CUDA next.
  static bool succeeds(cudaError_t answer) {
    if (answer != cudaSuccess) cudaGetLastError();
    return answer == cudaSuccess;
  }
};

/// Whose blocks a GPU starts first. Communication goes before kernels that fill the GPU, or it begins when they have ended.
enum class Urgency {
  usual,
  first
};

/// A stream with its scratch.
class OwnedQueue {
 public:
  OwnedQueue(int multiprocessors, std::size_t scratch_bytes, Urgency urgency = Urgency::usual) : scratch_(scratch_bytes) {
    queue_ = {.stream = nullptr, .multiprocessors = multiprocessors, .scratch = scratch_.data(), .scratch_bytes = scratch_bytes};
    int usual = 0, first = 0;
    check(cudaDeviceGetStreamPriorityRange(&usual, &first), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&queue_.stream, cudaStreamNonBlocking, urgency == Urgency::first ? first : usual),
          "cudaStreamCreate");
  }
  OwnedQueue(const OwnedQueue&) = delete;
  ~OwnedQueue() { cudaStreamDestroy(queue_.stream); }
  Queue& get() { return queue_; }
  /// Makes the scratch larger if it is smaller. Nothing may run in the stream.
  void reserve(std::size_t bytes) {
    if (bytes <= queue_.scratch_bytes) return;
    scratch_ = GpuMemory();
    scratch_ = GpuMemory(bytes);
    queue_.scratch = scratch_.data();
    queue_.scratch_bytes = bytes;
  }

 private:
  GpuMemory scratch_;
  Queue queue_;
};

}  // namespace tandem
