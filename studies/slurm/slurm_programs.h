#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::studies {

/// A job array to be submitted.
struct SlurmArray {
  std::string name;
  std::string script;  ///< the path of a shell script, which every task runs
  std::string log;     ///< where a task's output goes; %A stands for the job, %a for the task
  std::size_t tasks = 1;
  int cpus = 0;                        ///< of each task; 0 for what Slurm gives unasked
  std::vector<std::string> arguments;  ///< for sbatch, which take precedence over the above
};

/// Splits what a user wants sbatch to be told into words, as a shell does: blanks part words, quotes and backslashes keep them
/// together. Throws InputError at the place "--sbatch" where a quote does not end, and for what only Tandem can say (--array,
/// --wrap, --parsable, --test-only, --wait).
std::vector<std::string> sbatch_words(const std::string& text);

/// Submits the array, each of whose tasks Slurm starts once at most: what a dead one leaves, others do. Returns its job as
/// `slurm_states` and `cancel_slurm_job` want it. Throws std::runtime_error with what sbatch says.
std::string submit_slurm_array(const SlurmArray& array);

/// Returns what the tasks of these jobs are at, by task ("123_4"): RUNNING, PENDING, NODE_FAIL, ... Of tasks that are long gone
/// Slurm says nothing. Nothing where Slurm does not answer.
std::optional<std::map<std::string, std::string>> slurm_states(const std::vector<std::string>& jobs);

/// Whether a task that is in this state will do nothing more.
bool has_ended_in_slurm(const std::string& state);

/// Takes back the tasks of a job, or only those that have not begun. Nothing happens where there are none.
void cancel_slurm_job(const std::string& job, bool only_pending);

}  // namespace tandem::studies
