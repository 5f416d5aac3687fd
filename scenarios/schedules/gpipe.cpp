#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

std::vector<Action> gpipe(const PipelineShape& shape) {
  std::vector<Action> actions;
  for (std::int32_t m = 0; m < shape.micro_batches; ++m) actions.push_back({Action::Kind::forward, m, 0});
  for (std::int32_t m = shape.micro_batches; m-- > 0;) actions.push_back({Action::Kind::backward, m, 0});
  return actions;
}

}  // namespace tandem::scenarios
