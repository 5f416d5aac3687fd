#pragma once

#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/dag/dag.h"
#include "runtime/launch/control_plane.h"
#include "runtime/launch/launcher.h"

namespace tandem {

struct NcclWorldOptions {
  Seconds timeout = 300;    ///< to make a communicator, to connect at its first use, or to take it down
  Seconds watch_every = 1;  ///< NCCL is asked for errors of its own
};

/// Memory of the GPU that NCCL can reach from other GPUs and the network without copying. It goes before the world it is of.
class NcclMemory {
 public:
  virtual ~NcclMemory() = default;
  virtual std::byte* data() const = 0;
};

/// All of a DAG's communicators that this process belongs to, as NCCL's, and the collectives on them.
///
/// - Every process of the launch is a rank of the DAG, process i the rank `dag.ranks[i]`.
/// - Communicators are split from one over all ranks, in the rounds of split_rounds.h, with resources of their own: what shares
///   resources is run in the order of the calls.
/// - Nothing blocks: communicators are made non-blocking, and asked until they are ready, for `timeout` at most.
/// - When the run fails, all are aborted, which ends their kernels: whoever waits for a stream goes on, and must then look at
///   `ControlPlane::failure`. An error that NCCL itself finds ends the run.
/// - Kernels of different communicators on one GPU may not all fit at once: every process must issue its collectives in one order
///   of the whole DAG. NCCL_LAUNCH_ORDER_IMPLICIT is set to 1, unless it is set, so that the GPU starts them so.
class NcclWorld {
 public:
  virtual ~NcclWorld() = default;  ///< aborts unless closed

  /// Memory by ncclMemAlloc, which rounds up to what the GPU maps at once, registered with every communicator of the DAG (user
  /// buffer registration), so that NVLink SHARP, other GPUs and the network read and write it without NCCL's own buffers between.
  /// With NCCL_LOCAL_REGISTER=0 NCCL registers nothing. Where the members of a communicator have a buffer at different places of
  /// their memory, NVLink SHARP copies. Its end deregisters and frees it; after a failure, when the communicators are gone, it is
  /// freed alone. Throws std::runtime_error when there is not so much, a communicator refuses it, or the run has failed.
  virtual std::unique_ptr<NcclMemory> allocate(std::size_t bytes) = 0;

  /// Puts one member's part of a collective on `stream`. `address`: of a buffer in the GPU's memory. From one thread at a time.
  /// Throws std::logic_error for a task that NCCL cannot do, std::runtime_error for what NCCL reports or when the run has failed.
  virtual void issue(TaskId task, const std::function<void*(BufferId)>& address, cudaStream_t stream) = 0;

  /// Takes all communicators down, with the other processes, when all streams are done.
  virtual void close() = 0;
};

/// Called by all processes, the GPU of each set. `barrier_memory`: 4 bytes of the GPU's memory that nobody else uses, which
/// are registered nowhere: NCCL wants the members' buffers registered all or none.
/// Throws std::runtime_error when NCCL is missing, the module was built without it, sizes do not
/// agree, the DAG asks for what NCCL cannot do, or NCCL fails.
std::unique_ptr<NcclWorld> make_nccl_world(ControlPlane& control, const Launch& launch, const Dag& dag, void* barrier_memory,
                                           const NcclWorldOptions& options = {});

}  // namespace tandem
