#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace tandem::studies {

struct NamedTime {
  std::string name;
  Seconds time = 0;
};

/// What of a JSON result can be held against another. Results of older versions lack `stages` and `kinds`.
struct ComparableResult {
  std::string name;  ///< of its file
  std::string scenario;
  std::string backend;  ///< "simgrid", "host", "cuda"; empty where it is not known
  Seconds step_time = 0;
  std::optional<std::int64_t> gpus, tokens;
  std::optional<double> tokens_per_second_per_gpu, mfu;
  std::vector<NamedTime> parts;                               ///< "compute", "exposed tp", ...; add up to the step time
  std::optional<std::vector<std::vector<NamedTime>>> stages;  ///< "forward", ..., by stage; each add up to the step time
  std::optional<std::vector<NamedTime>> kinds;                ///< "gemm forward", "all_reduce (tp) backward-input"
  std::vector<Bytes> memory;                                  ///< by stage, at the peak
};

/// Of a text that `--json` wrote. `file` stands for it in messages. Throws InputError, which names the place where it is no JSON,
/// the key that a result has and this has not, or the value that cannot be.
ComparableResult parse_result(const std::string& text, const std::string& file);

/// The same of the file at `path`, which may also be one that cannot be read.
ComparableResult read_result(const std::string& path);

}  // namespace tandem::studies
