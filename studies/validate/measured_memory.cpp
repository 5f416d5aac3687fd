#include "studies/validate/measured_memory.h"

#include <cmath>

namespace tandem::studies {

MeasuredMemory measured_memory(const RunRow& row) {
  MeasuredMemory memory;
  memory.out_of_memory = row.name("memory_gb") == "oom";
  const std::optional<double> amount = row.number("memory_gb");
  if (!amount) return memory;
  constexpr double giga = 1e9, gibi = 1024.0 * 1024.0 * 1024.0;
  constexpr double cuda_context = 1.6e9;  // of an A100 in BLOOM's sweep, as its table says
  const std::string kind = row.name("memory_kind");
  const auto says = [&](std::string_view word) { return kind.find(word) != std::string::npos; };
  memory.peak = std::llround(*amount * (says("gib") || says("nvidia-smi") ? gibi : giga));
  if (says("nvidia-smi")) memory.outside_tensors = std::llround(cuda_context);
  return memory;
}

}  // namespace tandem::studies
