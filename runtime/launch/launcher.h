#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/units.h"
#include "runtime/launch/version.h"

namespace tandem {

using Environment = std::map<std::string, std::string, std::less<>>;

/// The variables of this process.
Environment process_environment();

/// How long the processes of a run wait for each other before it fails.
struct LaunchLimits {
  Seconds join = 120;    ///< until all have come to rank 0
  Seconds stall = 60;    ///< without progress of one while others wait
  Seconds silence = 30;  ///< without a report of one, or without rank 0's answer
};

/// Says where a process stands among those of a run, one per GPU, and where they meet.
struct Launch {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;    ///< among the processes of its machine: the number of its GPU
  std::string host = "127.0.0.1";  ///< of rank 0
  std::uint16_t port = 0;
  std::string session = {};  ///< what tells this run from others at the same port: the job's number, where the launcher has one
  std::string secret = {};   ///< by which the processes know each other, see secret.h; empty in a run of one process
  std::string version = std::string(program_version());  ///< must be the same for all
  LaunchLimits limits = {};
};

/// What the launcher says by environment variables; the first of these that is there counts:
///
/// | launcher | rank, size, local rank | address of rank 0 |
/// |---|---|---|
/// | torchrun, or by hand | RANK, WORLD_SIZE, LOCAL_RANK | MASTER_ADDR, MASTER_PORT |
/// | Open MPI's mpirun | OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK | MASTER_ADDR, MASTER_PORT |
/// | PMI (MPICH, Intel MPI) | PMI_RANK, PMI_SIZE, MPI_LOCALRANKID | MASTER_ADDR, MASTER_PORT |
/// | srun | SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID | the step's first node, a port from the job's number, unless given |
///
/// None of them: a run of this process alone. TANDEM_PORT goes before every port. torchrun's own store listens at MASTER_PORT
/// when it sets TORCHELASTIC_USE_AGENT_STORE: then it is the port after that. TANDEM_JOIN_TIMEOUT, TANDEM_STALL_TIMEOUT and
/// TANDEM_SILENCE_TIMEOUT set the limits, in whole seconds. The secret is left empty.
/// Throws std::runtime_error, one sentence with the variable, its value and the remedy, for what is missing, no number, out of
/// range, or contradicted by another launcher's variables.
Launch launch_from(const Environment& environment);

/// The host backend runs all ranks in one process: throws std::runtime_error where several were launched for it.
void refuse_launch_on_host(const Launch& launch, const std::string& backend);

/// The first of a list of hosts as Slurm writes it: node[003-010,12],login -> node003.
/// Throws std::invalid_argument when it is none.
std::string first_host(const std::string& nodes);

}  // namespace tandem
