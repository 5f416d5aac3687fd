#pragma once

#include <cstddef>
#include <string>

namespace tandem::studies {

/// Simulates steps of a spool, so many at once, each in a child, until the spool is removed, or until there has been nothing to
/// do and nobody to wait for it for minutes. `task` tells the tasks of a spool apart. A signal that asks the process to end (the
/// end of its time, preemption) has it give back what it has not finished.
void work_on_spool(const std::string& folder, const std::string& task, std::size_t at_once);

/// Returns what Slurm calls this process's task: "123_4". Throws std::runtime_error where it is none.
std::string this_slurm_task();

/// Returns how many CPUs of this machine Slurm has given to this process's job; 1 where it does not say.
std::size_t cpus_of_slurm_task();

}  // namespace tandem::studies
