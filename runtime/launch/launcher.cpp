#include "runtime/launch/launcher.h"

#include <unistd.h>

#include <charconv>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "runtime/backend_names.h"

extern char** environ;

namespace tandem {
namespace {

constexpr std::uint32_t most_processes = 1 << 20;
constexpr std::uint32_t largest_port = std::numeric_limits<std::uint16_t>::max();
// Where ports derived from a job's number lie: above the well-known ones, below those that Linux gives to clients.
constexpr std::uint32_t first_derived_port = 10'000;
constexpr std::uint32_t derived_ports = 20'000;

/// The variables, with the numbers among them checked.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool has(std::string_view name) const { return environment_.contains(name); }
  bool has_any(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (has(name)) return true;
    return false;
  }

  std::string text(std::string_view name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }

  std::uint32_t number(std::string_view name, std::uint32_t lowest, std::uint32_t highest) const {
    const std::string value = text(name);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && number >= lowest && number <= highest) return number;
    throw std::runtime_error(std::string(name) + " is '" + value + "', expected a whole number from " + std::to_string(lowest) +
                             " to " + std::to_string(highest));
  }

 private:
  const Environment& environment_;
};

/// The variables by which a launcher tells a process where it stands.
struct Names {
  std::string_view launcher, rank, size, local_rank, session;
};
constexpr Names torchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"};
constexpr Names open_mpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                         "PMIX_NAMESPACE"};
constexpr Names pmi{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_JOBID"};
constexpr Names slurm{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"};

bool present(const Variables& variables, const Names& names) { return variables.has_any({names.rank, names.size}); }

/// In a batch script Slurm's variables tell of the job, not of this process.
bool in_slurm_step(const Variables& variables) {
  return variables.has(slurm.rank) &&
         variables.has_any({"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS"});
}

Names slurm_names(const Variables& variables) {
  Names names = slurm;
  if (variables.has("SLURM_STEP_NUM_TASKS")) names.size = "SLURM_STEP_NUM_TASKS";
  return names;
}

/// Throws unless `name` is set, like another variable of this launcher.
void require(const Variables& variables, const Names& names, std::string_view name) {
  if (variables.has(name)) return;
  const std::string given(variables.has(names.rank) ? names.rank : names.size);
  throw std::runtime_error(std::string(name) + " is not set although " + given + " is '" + variables.text(given) +
                           "': set it, or start the processes with " + std::string(names.launcher));
}

/// Rank and size alone.
Launch place(const Variables& variables, const Names& names) {
  require(variables, names, names.size);
  require(variables, names, names.rank);
  Launch launch;
  launch.size = variables.number(names.size, 1, most_processes);
  launch.rank = variables.number(names.rank, 0, most_processes - 1);
  if (launch.rank < launch.size) return launch;
  throw std::runtime_error(std::string(names.rank) + " is " + std::to_string(launch.rank) + " although " +
                           std::string(names.size) + " is " + std::to_string(launch.size) + ": ranks count from 0 to " +
                           std::to_string(launch.size - 1));
}

void add_limits(const Variables& variables, LaunchLimits& limits) {
  constexpr std::uint32_t shortest = 2, longest = 7 * 24 * 3600;  // reports come twice a second
  const auto set = [&](std::string_view name, Seconds& limit) {
    if (variables.has(name)) limit = variables.number(name, shortest, longest);
  };
  set("TANDEM_JOIN_TIMEOUT", limits.join);
  set("TANDEM_STALL_TIMEOUT", limits.stall);
  set("TANDEM_SILENCE_TIMEOUT", limits.silence);
}

Launch standing(const Variables& variables, const Names& names) {
  Launch launch = place(variables, names);
  if (launch.size > 1) require(variables, names, names.local_rank);
  if (variables.has(names.local_rank)) launch.local_rank = variables.number(names.local_rank, 0, most_processes - 1);
  launch.session = variables.text(names.session);
  add_limits(variables, launch.limits);
  return launch;
}

bool same_place(const Launch& a, const Launch& b) { return a.rank == b.rank && a.size == b.size; }

void refuse_contradiction(const Variables& variables, const Launch& launch, const Names& names, const Names& other) {
  if (!present(variables, other) || same_place(launch, place(variables, other))) return;
  throw std::runtime_error(std::string(names.rank) + " is " + variables.text(names.rank) + " of " + std::string(names.size) +
                           " " + variables.text(names.size) + ", but " + std::string(other.rank) + " is " +
                           variables.text(other.rank) + " of " + std::string(other.size) + " " + variables.text(other.size) +
                           ": unset those that do not hold");
}

/// Of the variables set by hand. torchrun itself may well run under mpirun or srun, one per machine.
void refuse_contradictions(const Variables& variables, const Launch& launch) {
  if (variables.has(torchrun.session)) return;
  if (present(variables, open_mpi)) return refuse_contradiction(variables, launch, torchrun, open_mpi);
  if (present(variables, pmi)) return refuse_contradiction(variables, launch, torchrun, pmi);
  if (in_slurm_step(variables)) refuse_contradiction(variables, launch, torchrun, slurm_names(variables));
}

std::optional<std::uint16_t> given_port(const Variables& variables) {
  if (variables.has("TANDEM_PORT")) return static_cast<std::uint16_t>(variables.number("TANDEM_PORT", 1, largest_port));
  if (!variables.has("MASTER_PORT")) return std::nullopt;
  const std::uint32_t port = variables.number("MASTER_PORT", 1, largest_port);
  const bool taken = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return static_cast<std::uint16_t>(!taken ? port : port == largest_port ? port - 1 : port + 1);
}

std::uint16_t port_of_job(const Variables& variables) {
  const std::string_view job = variables.has("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID";
  if (!variables.has(job))
    throw std::runtime_error("SLURM_JOB_ID is not set: set MASTER_PORT to a free port on rank 0's machine");
  constexpr std::uint32_t highest = std::numeric_limits<std::uint32_t>::max();
  const std::string_view step = variables.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
  const std::uint64_t number =
      std::uint64_t{variables.number(job, 0, highest)} + (variables.has(step) ? variables.number(step, 0, highest) : 0);
  return static_cast<std::uint16_t>(first_derived_port + number % derived_ports);
}

std::string first_node(const Variables& variables) {
  for (const std::string_view name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (!variables.has(name)) continue;
    try {
      return first_host(variables.text(name));
    } catch (const std::invalid_argument&) {
      throw std::runtime_error(std::string(name) + " is '" + variables.text(name) +
                               "', expected hosts such as node[01-04]: set MASTER_ADDR to rank 0's machine");
    }
  }
  throw std::runtime_error("SLURM_STEP_NODELIST is not set: set MASTER_ADDR to rank 0's machine");
}

void add_given_address(const Variables& variables, const Names& names, Launch& launch) {
  const std::optional<std::uint16_t> port = given_port(variables);
  for (const std::string_view name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (!variables.text(name).empty() || (name == "MASTER_PORT" && port)) continue;
    throw std::runtime_error(std::string(name) + " is not set although " + std::string(names.size) + " is " +
                             std::to_string(launch.size) + ": set it to " +
                             (name == "MASTER_ADDR" ? "the machine of rank 0" : "a free port there") + ", the same for all");
  }
  launch.host = variables.text("MASTER_ADDR");
  launch.port = *port;
}

void add_address_in_slurm(const Variables& variables, Launch& launch) {
  const std::string given = variables.text("MASTER_ADDR");
  launch.host = given.empty() ? first_node(variables) : given;
  const std::optional<std::uint16_t> port = given_port(variables);
  launch.port = port ? *port : port_of_job(variables);
}

Launch in_slurm(const Variables& variables) {
  const Names names = slurm_names(variables);
  Launch launch = standing(variables, names);
  if (variables.has("SLURM_STEP_ID")) launch.session += "." + variables.text("SLURM_STEP_ID");
  if (launch.size > 1) add_address_in_slurm(variables, launch);
  return launch;
}

Launch with_given_address(const Variables& variables, const Names& names) {
  Launch launch = standing(variables, names);
  if (names.launcher == torchrun.launcher) refuse_contradictions(variables, launch);
  if (launch.size > 1) add_given_address(variables, names, launch);
  return launch;
}

void refuse_job_without_step(const Variables& variables) {
  if (!variables.has(slurm.rank) || !variables.has(slurm.size) || variables.text(slurm.size) == "1") return;
  throw std::runtime_error(
      "SLURM_NTASKS is '" + variables.text(slurm.size) +
      "', but this process belongs to no job step: start it with srun, or set RANK=0 and WORLD_SIZE=1 to run it alone");
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

Launch launch_from(const Environment& environment) {
  const Variables variables(environment);
  if (present(variables, torchrun)) return with_given_address(variables, torchrun);
  if (present(variables, open_mpi)) return with_given_address(variables, open_mpi);
  const bool step = in_slurm_step(variables);
  // srun --mpi=pmi2 sets both.
  const bool both =
      step && present(variables, pmi) && same_place(place(variables, pmi), place(variables, slurm_names(variables)));
  if (present(variables, pmi) && !both) return with_given_address(variables, pmi);
  if (step) return in_slurm(variables);
  refuse_job_without_step(variables);
  return {};
}

void refuse_launch_on_host(const Launch& launch, const std::string& backend) {
  if (launch.size > 1 && backend == host_backend)
    throw std::runtime_error("the host backend runs all ranks in one process, and " + std::to_string(launch.size) +
                             " were launched; expected one, or --backend cuda");
}

}  // namespace tandem
