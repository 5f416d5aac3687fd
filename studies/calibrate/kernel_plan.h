#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "sim/kernel_family.h"

namespace tandem::studies {

/// The kernels to measure, each once: two kernels of one `KernelKey` would take the same time for the same reason.
class KernelPlan {
 public:
  explicit KernelPlan(Bytes memory) : memory_(memory) {}

  /// Adds the kernel unless the plan has it already, it moves nothing, or its operands take more than the memory.
  void add(const TimedKernel& kernel);
  /// Adds all kernels of a DAG whose class is among `classes`.
  void add(const Dag& dag, std::initializer_list<OpClass> classes);

  const std::vector<TimedKernel>& kernels() const { return kernels_; }

 private:
  Bytes memory_;
  std::set<KernelKey> known_;
  std::vector<TimedKernel> kernels_;
};

/// Adds every kernel of the scenario's step, whatever its class.
void add_scenario(const Scenario& scenario, KernelPlan& plan);

// What to measure on any machine, for steps in each of these precisions.

/// Adds a few kernels of each class, the smallest and some of middling size, which tell how long the others will take.
void add_probes(const std::vector<DType>& precisions, KernelPlan& plan);

/// Adds the GEMMs and attentions of a training step on regular grids, each in every combination of types and transposes that its
/// forward and backward have:
///   GEMM        m, n, k of 16, 64, ... 16384
///   attention   sequences of 64, 256, ... 16384; 8 and 32 heads of 64 and 128; causal and not
void add_grids(const std::vector<DType>& precisions, KernelPlan& plan);

/// Adds the memory-bound kernels of steps of several kinds (dense, mixture of experts, latent attention, every way of context
/// parallelism, ...) on a ladder of sizes.
void add_memory_bound(const std::vector<DType>& precisions, KernelPlan& plan);

/// Adds the matrix products and attentions of the model presets, tensor-parallel over 1 to 8 ranks, on micro-batches of one
/// `sequence`. Stops after `patience`.
void add_presets(const std::vector<DType>& precisions, std::int64_t sequence, Seconds patience, KernelPlan& plan);

}  // namespace tandem::studies
