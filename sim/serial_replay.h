#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/countdowns.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/chains.h"
#include "sim/kernel_times.h"

namespace tandem::sim {

/// Returns the instant by which a task that started then has its turn. Dates lie on round parts of a nanosecond more often than
/// elsewhere: an instant that ended there would tell equal ones apart.
inline double instant_of_turn(Seconds start) {
  constexpr Seconds off_round_parts = 0.1816e-10;
  return instant_of(start + off_round_parts);
}

/// Replays a timeline with one task at a time on each rank, in the order in which they started, each issued by the CPU only when
/// the one before has ended.
///
/// Ranks go on by themselves. Each takes the tasks at the heads of its streams by the instant at which they started, those of one
/// instant by their numbers. It goes through a chain up to where another of its streams has its turn, and stops at a collective
/// that others have not come to, and at what waits for another rank. Where all stand, what is ready and started first is taken.
///
/// A stretch that the timeline repeats is replayed as often again, at the times that come of it, when all ranks have come
/// through.
class SerialReplay {
 public:
  /// The DAG must outlive it.
  explicit SerialReplay(const Dag& dag);

  /// Returns when the last task ends; nothing where a task of a stretch that repeats itself waits on another rank for one of the
  /// stretch before, which is not told here from others. `alone`: how long kernels take; the timeline's durations where it is
  /// null. To be called once.
  std::optional<Seconds> last_end(const Timeline& timeline, const KernelTimes* alone);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  /// A stream of a rank.
  struct Lane {
    std::uint32_t next = 0, end = 0;  ///< of `heads_`
    TaskId head = no_id;              ///< the first that was not replayed, or none
    GroupId group = no_id;            ///< of the head
    double instant = never;           ///< of its turn
  };
  struct Picked {
    Lane* lane = nullptr;         ///< whose turn it is
    double next_instant = never;  ///< of what comes next on another lane
  };
  struct Place {
    std::uint32_t first_lane = 0;
    bool is_queued = false;
    GroupId stands_at = no_id;  ///< a collective that others have not come to
    Seconds free = 0;
  };
  /// A unit of a stretch that repeats itself.
  struct Repeated {
    TaskId first = 0;
    Seconds length = 0;
  };

  const Dag& dag_;
  const Chains chains_;
  std::vector<Seconds> issue_of_kernel_, issue_of_group_;
  std::vector<TaskId> heads_;           ///< rank by rank, stream by stream, those that no chain goes on with
  std::vector<Lane> lanes_;             ///< rank by rank
  std::vector<Place> places_;           ///< by rank, and where the last one's lanes end
  Countdowns waiting_for_;              ///< by task: predecessors that were not replayed, but for the one in a chain
  std::vector<std::uint32_t> missing_;  ///< by group: members that are not ready
  std::vector<std::uint32_t> come_;     ///< by group: members whose ranks stand at it
  /// By task, what it waits for on other ranks: when its own is free, all has ended that it waits for there.
  std::unordered_map<TaskId, std::vector<TaskId>> from_others_;
  std::unordered_map<TaskId, Seconds> end_for_others_;  ///< by task that one on another rank waits for
  std::vector<bool> meets_others_;                      ///< by task: whether it is among these or those
  std::size_t left_;

  const Timeline* timeline_ = nullptr;
  std::vector<Seconds> of_kernel_;  ///< how long it takes and is issued; without `alone` how long it is issued
  bool has_durations_ = false;      ///< of kernels; else they are the timeline's
  std::vector<RankIndex> queue_;    ///< ranks that may go on
  std::vector<Repeated> stretch_;   ///< in the order in which they came
  bool stretch_is_over_ = false, is_in_one_go_ = true;

  void note_edges();
  void lay_lanes();
  std::span<Lane> lanes_of(RankIndex rank);
  void set_head(Lane& lane, TaskId head);
  void move_on(Lane& lane);
  TaskId first_of_unit(const Lane& lane) const;
  bool is_ready(const Lane& lane) const;
  bool waits_for_stretch(TaskId task) const;
  void queue(RankIndex rank);
  void queue_all();
  Picked pick(RankIndex rank);
  void go_on(RankIndex rank);
  bool have_all_come_to(RankIndex rank, GroupId group);
  std::uint32_t members_on(RankIndex rank, GroupId group);
  void leave_collective(RankIndex rank);
  void play_chain(Lane& lane, double until_instant);
  void play_collective(GroupId group);
  void settle(TaskId task);
  bool play_first_of_all();
  void play(TaskId first);
  Seconds length_of(TaskId first) const;
  void take(TaskId first, Seconds length);
  void repeat_stretch();
  bool waits_for_earlier_stretches(TaskId task) const;
};

}  // namespace tandem::sim
