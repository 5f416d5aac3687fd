#pragma once

#include <string>

#include "tests/runtime/temporary_folder.h"

namespace tandem::cli {

/// Puts programs that only pretend to be Slurm's (tests/cli/fake_slurm) before all others on the PATH. They run tasks on this
/// machine.
class FakeSlurm {
 public:
  FakeSlurm();
  ~FakeSlurm();
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;

  /// A file of the folder with which a test talks to the programs; fake_slurm/sbatch and squeue say which there are.
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const;
  /// How many arrays were submitted.
  int arrays() const;

 private:
  TemporaryFolder folder_;
  std::string path_;  ///< before
};

}  // namespace tandem::cli
