#include <algorithm>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

std::vector<Action> one_f_one_b(const PipelineShape& shape) {
  const std::int32_t warm_up = std::min(shape.stages - 1 - shape.stage + (shape.pairs ? 1 : 0), shape.micro_batches);
  std::vector<Action> actions;
  for (std::int32_t m = 0; m < warm_up; ++m) actions.push_back({Action::Kind::forward, m, 0});
  for (std::int32_t m = 0; m < shape.micro_batches; ++m) {
    if (m + warm_up < shape.micro_batches) actions.push_back({Action::Kind::forward, m + warm_up, 0, shape.pairs});
    actions.push_back({Action::Kind::backward, m, 0});
  }
  return actions;
}

}  // namespace tandem::scenarios
