#include "scenarios/schedules/schedule.h"

#include <stdexcept>

namespace tandem::scenarios {

std::vector<Action> schedule(ScheduleKind kind, const PipelineShape& shape) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return gpipe(shape);
    case ScheduleKind::one_f_one_b:
      return one_f_one_b(shape);
    case ScheduleKind::interleaved:
      return interleaved_one_f_one_b(shape);
    case ScheduleKind::zero_bubble_h1:
      return zero_bubble_h1(shape);
    case ScheduleKind::zero_bubble_v:
      return zero_bubble_v(shape);
    case ScheduleKind::dualpipe:
      return dualpipe(shape);
  }
  throw std::logic_error("unknown schedule");
}

}  // namespace tandem::scenarios
