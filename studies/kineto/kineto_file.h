#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/dag/dag.h"

namespace tandem::studies {

/// What PyTorch records of a collective beside its kernel (torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
struct RecordedCollective {
  std::string name;  ///< "allreduce", "_allgather_base", "send"
  std::int64_t in_elements = 0, out_elements = 0;
  std::string dtype;                 ///< "BFloat16"
  std::int64_t group_size = 0;       ///< 0: not recorded
  std::vector<std::uint32_t> ranks;  ///< of the world; empty where they are not recorded, or shortened
};

/// Whatever runs on a device: a kernel, a copy or a fill.
struct RecordedKernel {
  enum class Kind : std::uint8_t {
    kernel,
    copy,
    fill
  };
  std::string name;
  std::string operation = {};  ///< "gemm": what a trace that Tandem wrote calls it
  Kind kind = Kind::kernel;
  std::int64_t stream = 0;
  Seconds start = 0, end = 0;       ///< since the trace's first event
  std::optional<Seconds> launched;  ///< when the CPU issued it
  std::optional<Phase> phase;  ///< by what the CPU was about: autograd's engine, an optimizer's step; absent without CPU events
  std::optional<RecordedCollective> collective;
};

/// `ProfilerStep#N`, as the CPU went through it.
struct RecordedIteration {
  std::string name;
  Seconds start = 0, end = 0;
};

/// One rank's trace, as torch.profiler writes it (pytorch/kineto, libkineto/src/output_json.cpp).
struct KinetoTrace {
  std::string file;
  std::optional<std::uint32_t> rank;          ///< absent where the trace does not tell
  std::int64_t world_size = 0;                ///< 0: not told
  std::string device;                         ///< "NVIDIA H100 80GB HBM3"; empty: not told
  std::vector<RecordedKernel> kernels;        ///< by start
  std::vector<RecordedIteration> iterations;  ///< by start; empty where nothing called `profiler.step()`
};

/// Whether traces lie at the path, by its name: a folder, or a file *.json or *.json.gz.
bool are_kineto_traces(const std::string& path);

/// Reads one trace, plain or compressed by gzip. Throws InputError where the file cannot be read, is no JSON of a trace, or has
/// no kernels.
KinetoTrace read_kineto(const std::string& path);

/// Reads a trace, or all traces in a folder (`*.json`, `*.json.gz`), by rank. Throws InputError as `read_kineto` does, and where
/// a folder holds no trace, two of one rank, or traces of worlds of different sizes.
std::vector<KinetoTrace> read_kineto_traces(const std::string& path);

}  // namespace tandem::studies
