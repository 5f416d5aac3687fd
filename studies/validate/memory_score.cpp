#include "studies/validate/memory_score.h"

namespace tandem::studies {

namespace {

Bytes predicted(const StepResult& step, MemoryFigure figure) {
  if (!step.device_memory || figure == MemoryFigure::tensors) return step.peak_memory();
  if (figure == MemoryFigure::allocated) return step.device_memory->allocated;
  return figure == MemoryFigure::reserved ? step.device_memory->reserved : step.device_memory->device();
}

}  // namespace

MemoryScore memory_score_of(std::span<const ValidatedRow> rows) {
  MemoryScore memory;
  std::vector<ScoredError> errors;
  std::array<std::vector<ScoredError>, memory_figure_count> of_figure;
  for (const ValidatedRow& row : rows) {
    if (!row.prediction) continue;
    const Prediction& prediction = *row.prediction;
    FitsTable& fits = memory.fits;
    if (row.memory.out_of_memory)
      ++(prediction.fits ? fits.oom_fits : fits.oom_exceeds);
    else if (row.measured)
      ++(prediction.fits ? fits.ran_fits : fits.ran_exceeds);
    for (const MeasuredPeak& peak : row.memory.peaks) {
      memory.rows.push_back({row.id, peak.figure, peak.bytes, predicted(prediction.typical.step, peak.figure)});
      errors.push_back({row.source, memory.rows.back().error()});
      of_figure[static_cast<std::size_t>(peak.figure)].push_back(errors.back());
    }
  }
  memory.score = score_of(errors);
  for (std::size_t figure = 0; figure < memory_figure_count; ++figure) memory.by_figure[figure] = score_of(of_figure[figure]);
  return memory;
}

}  // namespace tandem::studies
