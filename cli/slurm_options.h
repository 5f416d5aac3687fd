#pragma once

#include <memory>
#include <string>
#include <vector>

#include "studies/slurm/slurm_pool.h"

namespace CLI {
class App;
}

namespace tandem::cli {

/// The options of a subcommand whose steps Slurm may simulate.
class SlurmOptions {
 public:
  /// Adds `--slurm[=N]` and `--sbatch`, for `what` ("the points").
  void add_to(CLI::App& command, const std::string& what);

  /// Returns a pool that works in `folder`, which all nodes must see, with `jobs` steps at once in a task (0: one per CPU that
  /// Slurm gives it). Null where nobody asked for Slurm. Throws InputError where `--sbatch` is wrong. What happens in Slurm goes
  /// to standard error.
  std::unique_ptr<SlurmPool> pool(const std::string& name, const std::string& folder, int jobs) const;

 private:
  std::string slurm_;
  int tasks_ = 0;  ///< 0 without Slurm
  std::vector<std::string> sbatch_;
};

}  // namespace tandem::cli
