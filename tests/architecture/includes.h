#pragma once

#include <string>
#include <vector>

namespace tandem::architecture {

/// An `#include` line of one of the project's sources.
struct Include {
  std::string file;  ///< from the project's root: "sim/simulate.cpp"
  int line = 0;
  std::string target;    ///< as written: "runtime/dag/dag.h", "CLI/CLI.hpp"
  bool is_ours = false;  ///< in quotes: from the project's root

  std::string place() const { return file + ":" + std::to_string(line); }
};

/// The folders of the programs and their libraries.
inline const std::vector<std::string> code_folders = {"runtime", "topology", "traces", "scenarios", "sim", "studies", "cli"};

/// The sources (.h, .cpp, .cu) below these folders of the project, sorted, from the project's root.
std::vector<std::string> sources_below(const std::vector<std::string>& folders);

/// All of the sources (.h, .cpp, .cu) below these folders of the project, in the order of files and lines.
std::vector<Include> includes_below(const std::vector<std::string>& folders);

/// "sim" of "sim/campaign/campaign.h".
std::string top_folder(const std::string& file);

/// The folder that a file counts as part of. What `tandem_cuda.so` alone compiles of runtime/ops (the kernels for GPUs, and the
/// headers `*_device.h` that they share) counts as runtime/cuda/module: it lies beside the host's kernels for the reader, and is
/// part of another target. So does runtime/cuda/emulation, which stands in the place of the device below that module.
std::string room_of(const std::string& file);

}  // namespace tandem::architecture
