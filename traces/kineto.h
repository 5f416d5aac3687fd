#pragma once

#include <string>
#include <vector>

#include "traces/formats.h"

namespace tandem::traces {

/// A trace as PyTorch's profiler leaves it and Holistic Trace Analysis reads it: in a folder a file per rank, "rank16.json", each
/// of which names its rank under "distributedInfo". A file holds Chrome's events, every slice of category "kernel" with its
/// stream (1 or more) among the arguments; communication is named after NCCL's kernels, as readers go by the "nccl" at the
/// beginning. The thread of the CPU has the iteration (`ProfilerStep#1`), and for each kernel an operator and in it the launch,
/// which has the kernel's `correlation`; so that launches are not before the file begins, all of it is later by as much
/// (launches.h). There are no flows among ranks, as their ends lie in different files.
///
/// Constructor and `write` throw std::runtime_error with the path and the reason.
class TraceFolder final : public OpenTrace {
 public:
  /// Makes the folder, unless it is there, and sees whether it can be written into.
  explicit TraceFolder(std::string path);
  /// Takes the folder away again if it was made and nothing was written.
  ~TraceFolder() override;
  TraceFolder(const TraceFolder&) = delete;

  /// Each file appears whole or not at all. Several sources have a folder each, by their titles. Returns the other traces that
  /// lie there, of which a reader would take ranks that are not of this step.
  std::vector<std::string> write(const std::vector<TraceSource>& sources) override;

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace tandem::traces
