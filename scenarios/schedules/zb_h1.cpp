#include <algorithm>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

std::vector<Action> zero_bubble_h1(const PipelineShape& shape) {
  const std::int32_t all = shape.micro_batches;
  const std::int32_t warm_up = std::min(shape.stages - 1 - shape.stage, all);
  const std::int32_t put_off = std::min(shape.stage, all);
  std::vector<Action> actions;
  for (std::int32_t m = 0; m < warm_up; ++m) actions.push_back({Action::Kind::forward, m, 0});
  for (std::int32_t m = 0; m < all; ++m) {
    if (m + warm_up < all) actions.push_back({Action::Kind::forward, m + warm_up, 0});
    actions.push_back({Action::Kind::backward_input, m, 0});
    if (m >= put_off) actions.push_back({Action::Kind::backward_weight, m - put_off, 0});
  }
  for (std::int32_t m = all - put_off; m < all; ++m) actions.push_back({Action::Kind::backward_weight, m, 0});
  return actions;
}

}  // namespace tandem::scenarios
