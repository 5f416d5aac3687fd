#pragma once

#include <optional>

#include "runtime/base/units.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// The fullest GPU's memory as it was measured.
struct MeasuredMemory {
  std::optional<Bytes> peak;
  /// Bytes in the measurement beside the program's tensors: CUDA's context, where the driver was asked (nvidia-smi).
  Bytes outside_tensors = 0;
  bool out_of_memory = false;
};

/// Returns the row's `memory_gb`, read as GiB where `memory_kind` says so or names nvidia-smi, whose MiB are binary; else as GB.
MeasuredMemory measured_memory(const RunRow& row);

}  // namespace tandem::studies
