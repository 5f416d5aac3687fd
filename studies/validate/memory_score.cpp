#include "studies/validate/memory_score.h"

namespace tandem::studies {

MemoryScore memory_score_of(std::span<const ValidatedRow> rows) {
  MemoryScore memory;
  std::vector<ScoredError> errors;
  for (const ValidatedRow& row : rows) {
    if (!row.prediction) continue;
    const Prediction& prediction = *row.prediction;
    FitsTable& fits = memory.fits;
    if (row.memory.out_of_memory)
      ++(prediction.fits ? fits.oom_fits : fits.oom_exceeds);
    else if (row.measured)
      ++(prediction.fits ? fits.ran_fits : fits.ran_exceeds);
    if (!row.memory.peak) continue;
    memory.rows.push_back({row.id, *row.memory.peak, prediction.typical.step.peak_memory() + row.memory.outside_tensors});
    errors.push_back({row.source, memory.rows.back().error()});
  }
  memory.score = score_of(errors);
  return memory;
}

}  // namespace tandem::studies
