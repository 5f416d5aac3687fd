#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "scenarios/schedules/schedule.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// The order of actions on each stage, made once for each schedule and its sizes.
class Schedules {
 public:
  /// Returns the actions by stage.
  const std::vector<std::vector<Action>>& of(const Scenario& scenario, std::int32_t micro_batches);

 private:
  using Key = std::tuple<ScheduleKind, std::int64_t, std::int64_t, std::int32_t, bool>;
  std::map<Key, std::vector<std::vector<Action>>> known_;
};

}  // namespace tandem::studies
