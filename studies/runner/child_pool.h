#pragma once

#include <list>

#include "studies/runner/step_pool.h"
#include "studies/runner/step_server.h"

namespace tandem::studies {

/// Simulates each step in a process of its own on this machine: one that crashes or is killed is a failure and takes nothing else
/// with it, and all of them die with the pool and with its process, however that ends. They share the memory that this process
/// may take (memory_limit.h) and the processors in equal parts.
class ChildPool final : public StepPool {
 public:
  /// Holds so many steps at once, at least one.
  explicit ChildPool(std::size_t most);

  void expect(std::size_t steps) override;
  std::size_t capacity() const override { return most_; }
  std::size_t running() const override { return busy_.size(); }
  /// Throws std::system_error where no process can be had.
  void start(std::size_t index, const StepJob& job, const ChildSignals& signals) override;
  std::vector<EndedStep> wait(const ChildSignals& signals) override;
  /// The same, not longer than `patience`.
  std::vector<EndedStep> wait(const ChildSignals& signals, Seconds patience);

 private:
  struct Slot {
    std::size_t index;  ///< of the step that is simulated
    StepServer server;
    Slot(const ProcessShare& share, const ChildSignals& signals) : index(0), server(share, signals) {}
  };

  std::size_t most_;
  Bytes memory_;  ///< of all
  std::list<Slot> busy_, idle_;
};

}  // namespace tandem::studies
