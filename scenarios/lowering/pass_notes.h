#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/parameters.h"

namespace tandem::scenarios {

/// Passes that should be copies of each other are not (repeated_passes.h): all must be lowered.
class PassesDiffer : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Of the tasks that a pass lowers.
struct PassLabels {
  Phase phase = Phase::forward;
  std::int16_t layer = -1, chunk = -1;
  bool operator==(const PassLabels&) const = default;
};

/// What one pass adds to a DAG, and asks for beside, in the order in which it is lowered: in one go, or in turns with another.
/// Tasks and buffers have numbers of their own here, counted from the pass's first.
struct PassNotes {
  /// Another pass may come after it.
  struct Turn {
    std::size_t tasks, buffers;  ///< so many by its end
    bool operator==(const Turn&) const = default;
  };
  /// In which turn something was asked for, and how many tasks and buffers there were.
  struct When {
    std::size_t turn, tasks, buffers;
    auto operator<=>(const When&) const = default;
  };
  struct Order {
    When when;
    std::size_t task;  ///< starts after the last compute kernel then
    bool operator==(const Order&) const = default;
  };
  struct Hold {
    When when;
    std::size_t task;  ///< ends before the next compute kernel begins
    bool operator==(const Hold&) const = default;
  };
  struct Gradient {
    When when;
    ParameterId parameter;  ///< to whose gradient the pass has added
    PassLabels labels;
    bool operator==(const Gradient&) const = default;
  };

  std::vector<TaskId> tasks;
  std::vector<BufferId> buffers;
  std::vector<std::size_t> inputs;  ///< places in `Dag::inputs`
  std::vector<Turn> turns;
  std::vector<Order> orders;
  std::vector<Hold> holds;
  std::vector<Gradient> gradients;
  PassLabels labels;                               ///< at the end of the last turn
  bool declares = false;                           ///< parameters
  std::int64_t casts_before = 0, casts_after = 0;  ///< `Context::casts`

  /// A turn begins, and ends.
  void enter(const Dag& dag);
  void leave(const Dag& dag, const PassLabels& last);

  // While a turn is lowered. The number of a task; throws PassesDiffer where it is another pass's.
  When now(const Dag& dag) const {
    return {turns.size(), tasks.size() + dag.tasks.size() - entered_tasks_,
            buffers.size() + dag.buffers.size() - entered_buffers_};
  }
  std::size_t number_of(TaskId task) const;

 private:
  std::size_t entered_tasks_ = 0, entered_buffers_ = 0, entered_inputs_ = 0, entered_shards_ = 0;
};

}  // namespace tandem::scenarios
