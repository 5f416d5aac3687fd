#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// What a peak of memory counts (studies/step/device_memory.h).
enum class MemoryFigure : std::uint8_t {
  tensors,    ///< what is measured is not said; held against the sum of the buffers
  allocated,  ///< torch.cuda.max_memory_allocated
  reserved,   ///< torch.cuda.max_memory_reserved
  device      ///< nvidia-smi
};
inline constexpr std::size_t memory_figure_count = 4;
constexpr std::string_view name_of(MemoryFigure figure) {
  constexpr std::string_view names[memory_figure_count] = {"tensors", "allocated", "reserved", "device"};
  return names[static_cast<std::size_t>(figure)];
}

struct MeasuredPeak {
  MemoryFigure figure = MemoryFigure::tensors;
  Bytes bytes = 0;
};

/// The fullest GPU's memory as it was measured.
struct MeasuredMemory {
  std::vector<MeasuredPeak> peaks;
  bool out_of_memory = false;
};

/// Returns the row's `memory_gb`, read as GiB where `memory_kind` says so or names nvidia-smi, whose MiB are binary; else as GB.
/// `memory_kind` says what it counts: "allocated", "reserved", "nvidia-smi". And its `reserved_gib`, where it has that beside it.
MeasuredMemory measured_memory(const RunRow& row);

}  // namespace tandem::studies
