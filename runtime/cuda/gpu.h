#pragma once

#include <memory>
#include <string>

#include "runtime/backend.h"
#include "runtime/kernel_timer.h"
#include "runtime/plan/graph_pieces.h"

namespace tandem {

class ControlPlane;
struct Launch;

/// The facts that a measurement must name.
struct GpuInfo {
  std::string name;
  std::string versions;  ///< "driver 13.0, CUDA 13.0, cuBLAS 13.0.2", as far as they are known
  Bytes memory = 0;
  int multiprocessors = 0;
};

struct GpuStepOptions {
  /// With both set, each rank of the DAG is a process and NCCL does collectives. With both null, all ranks are virtual ones of
  /// this process's GPU.
  ControlPlane* control = nullptr;
  const Launch* launch = nullptr;
  GraphScope graphs = GraphScope::none;  ///< what is captured, and launched as CUDA graphs
};

/// What was captured of a step.
struct GraphCount {
  std::size_t graphs = 0;
  std::size_t nodes = 0;  ///< kernels, copies and dates of all of them
  auto operator<=>(const GraphCount&) const = default;
};

/// A step of a DAG on this process's GPU: its memory, filled and read from the host, and the backend that runs it. Units are
/// started ahead. Times are those of the GPU's clock, in seconds since the step's first event.
class GpuStep : public Backend {
 public:
  /// Fills memory with the initial contents (see initial_contents.h), and with NaN elsewhere.
  virtual void fill(std::uint64_t seed) = 0;
  /// Reads a buffer of a rank that runs here, as fp32, or int32 where it holds tokens.
  virtual void read(BufferId id, const HostTensor& out) = 0;
  /// Runs every distinct collective of the DAG once, on contents whose result is known exactly; returns how many there are. Those
  /// of virtual ranks run in fp32 on memory of their own, by the kernels of the step, and reductions in bf16 and fp16 once more
  /// in the DAG's own buffers and types; those between processes run by NCCL in these. What the buffers hold is undefined
  /// afterwards. All processes call it. Throws std::runtime_error with
  /// the first wrong element.
  virtual std::size_t verify_collectives() = 0;
  /// Returns the bytes that the plan took from the GPU for one rank's buffers, gaps between them included.
  virtual Bytes arena(RankIndex rank) const = 0;
  /// Says whether the next runs record when each task begins and ends, as they do unless told otherwise. Without that, all tasks
  /// of a run begin and end at 0.
  virtual void date_tasks(bool dates) = 0;
  /// Returns how long the last run took, from before its first task to after its last.
  virtual Seconds duration() const = 0;
  /// Returns how many runs, each right after the one before, have the mean of training's steps: where steps reach the power
  /// limit, clocks rise and fall from one to the next. 1 where the last run was too short for that.
  virtual std::size_t runs_of_mean() const { return 1; }
  /// Returns what the last run launched as graphs.
  virtual GraphCount graphs() const = 0;
  /// Takes the communicators between processes down, with all other processes. Nothing of the step may be used afterwards.
  /// Without it they are aborted at the end. Throws std::runtime_error when the run has failed.
  virtual void close() = 0;
};

/// One GPU, as the module sees it.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual GpuInfo info() const = 0;
  /// Throws std::runtime_error when the DAG does not fit the GPU, or has what it cannot do.
  virtual std::unique_ptr<GpuStep> make_step(const Dag& dag, const GpuStepOptions& options) = 0;
  virtual std::unique_ptr<KernelTimer> make_kernel_timer() = 0;
};

inline constexpr std::uint32_t most_virtual_ranks = 16;

/// Opens the module `tandem_cuda.so` beside this program, in ../lib/tandem where it is installed, or where TANDEM_CUDA_MODULE
/// says, and the GPU `device` with it. Throws std::runtime_error with the reason: not built, no driver, no GPU.
std::unique_ptr<Gpu> open_gpu(int device = 0);

/// The function that the module exports as `tandem_open_gpu`; `interface` is the gpu_interface that the program was built with.
using OpenGpu = std::unique_ptr<Gpu>(int device, int interface);
inline constexpr int gpu_interface = 4;

}  // namespace tandem
