#include "tests/cli/fake_slurm.h"

#include <cstdlib>
#include <fstream>

namespace tandem::cli {

FakeSlurm::FakeSlurm() : path_(std::getenv("PATH")) {
  ::setenv("PATH", (TANDEM_SOURCE_DIR "/tests/cli/fake_slurm:" + path_).c_str(), 1);
  ::setenv("FAKE_SLURM", folder_.path().c_str(), 1);
}

FakeSlurm::~FakeSlurm() {
  ::setenv("PATH", path_.c_str(), 1);
  ::unsetenv("FAKE_SLURM");
}

void FakeSlurm::write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

int FakeSlurm::arrays() const {
  int jobs = 0;
  std::ifstream(folder_ / "jobs") >> jobs;
  return jobs;
}

}  // namespace tandem::cli
