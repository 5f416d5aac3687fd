#include "studies/validate/measured_memory.h"

#include <cmath>

namespace tandem::studies {

MeasuredMemory measured_memory(const RunRow& row) {
  MeasuredMemory memory;
  memory.out_of_memory = row.name("memory_gb") == "oom";
  constexpr double giga = 1e9, gibi = 1024.0 * 1024.0 * 1024.0;
  if (const std::optional<double> amount = row.number("memory_gb")) {
    const std::string kind = row.name("memory_kind");
    const auto says = [&](std::string_view word) { return kind.find(word) != std::string::npos; };
    const MemoryFigure figure = says("nvidia-smi")  ? MemoryFigure::device
                                : says("reserved")  ? MemoryFigure::reserved
                                : says("allocated") ? MemoryFigure::allocated
                                                    : MemoryFigure::tensors;
    memory.peaks.push_back({figure, std::llround(*amount * (says("gib") || says("nvidia-smi") ? gibi : giga))});
  }
  if (const std::optional<double> amount = row.number("reserved_gib"))
    memory.peaks.push_back({MemoryFigure::reserved, std::llround(*amount * gibi)});
  return memory;
}

}  // namespace tandem::studies
