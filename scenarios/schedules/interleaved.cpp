#include <algorithm>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {
namespace {

/// The k-th unit of a stage's forwards; backwards take the same order with the chunks reversed.
Action unit(const PipelineShape& shape, Action::Kind kind, std::int32_t k) {
  const std::int32_t group = shape.stages * shape.chunks;
  const std::int32_t chunk = k % group / shape.stages;
  const std::int32_t micro_batch = k / group * shape.stages + k % shape.stages;
  return {kind, micro_batch, kind == Action::Kind::forward ? chunk : shape.chunks - 1 - chunk};
}

}  // namespace

std::vector<Action> interleaved_one_f_one_b(const PipelineShape& shape) {
  const std::int32_t units = shape.micro_batches * shape.chunks;
  const std::int32_t warm_up =
      std::min(2 * (shape.stages - 1 - shape.stage) + (shape.chunks - 1) * shape.stages + (shape.pairs ? 1 : 0), units);
  std::vector<Action> actions;
  for (std::int32_t k = 0; k < warm_up; ++k) actions.push_back(unit(shape, Action::Kind::forward, k));
  for (std::int32_t k = 0; k < units; ++k) {
    if (k + warm_up < units) {
      actions.push_back(unit(shape, Action::Kind::forward, k + warm_up));
      actions.back().exchanges_with_next = true;
      actions.back().beside_next = shape.pairs;
    }
    actions.push_back(unit(shape, Action::Kind::backward, k));
  }
  return actions;
}

}  // namespace tandem::scenarios
