#pragma once

#include <list>

#include "studies/runner/step_pool.h"
#include "studies/runner/step_process.h"

namespace tandem::studies {

/// Simulates each step in a forked child of this process: one that crashes or is killed is a failure and takes nothing else with
/// it, and all children die with the pool and with its process, however that ends. They share the memory that this process may
/// take (memory_limit.h) and the processors in equal parts.
class ChildPool final : public StepPool {
 public:
  /// Holds so many children at once, at least one.
  explicit ChildPool(std::size_t most);

  void expect(std::size_t steps) override;
  std::size_t capacity() const override { return most_; }
  std::size_t running() const override { return children_.size(); }
  void start(std::size_t index, const StepJob& job, const ChildSignals& signals) override;
  std::vector<EndedStep> wait(const ChildSignals& signals) override;

 private:
  struct Child {
    std::size_t index;
    StepProcess process;
    Child(std::size_t at, const StepJob& job, const ProcessShare& share, const ChildSignals& signals)
        : index(at), process(std::get<Scenario>(job.scenario), job.text, share, signals) {}
  };

  std::size_t most_;
  Bytes memory_;  ///< of all
  std::list<Child> children_;
};

}  // namespace tandem::studies
