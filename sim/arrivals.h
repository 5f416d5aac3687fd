#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/base/order_statistics.h"
#include "sim/arrival_plan.h"
#include "sim/jitter.h"
#include "sim/late_history.h"

namespace tandem::sim {

/// Says when, in a step with jitter, the members of a collective arrive of which a folded DAG simulates only one.
///
/// A lowered rank stands for k ranks of the world, and lives through the step as one of them does. Of every task it is known what
/// its end is early or late by, as a sum of parts, along the predecessors that ended last ("critical" ones): each part is the
/// excess of so many seconds of work over their undisturbed time which all ranks of a span (rank_spans.h) have in common, because
/// they waited for each other after it. Beside what a part came to for the simulated member it knows its distribution: mean and
/// variance, kernel by kernel; what comes from the ranks' speeds apart, for that adds up in proportion and not as a root.
///
/// Members of a collective that are alike differ in those parts whose span does not hold all of them. From the smallest span to
/// the largest, k groups of members that have waited for each other meet; the simulated one knows its own arrival, and that of
/// the k - 1 others is drawn as the largest of so many draws of the same distribution, by order statistics:
///
///   F^-1(U^(1 / (k - 1)))     U uniform in (0, 1), F lognormal of the mean and the variance
///
/// The scores of the others' speeds last for the whole step: the slowest `lasting_scores` of them are drawn once per
/// communicator, one after the other from the largest down (U^(1/n), then times U'^(1/(n-1)), ...), and to each of them comes at
/// every meeting the rest of the variance; the others are drawn together, below the least of these.
///
/// The largest of k has a mean and a variance too (largest_normal), and these are what the meeting's span has in common from then
/// on: for a rank's data-parallel peers have waited for tensor-parallel peers of their own. Of the variance that lasts, what is
/// left lies between 1/k (where the rest decides who is last) and the largest's own (where speeds do); it is interpolated by
/// their shares.
///
/// Where classes meet (pipeline stages), the one that arrives last decides, and its parts become all members'. Members of
/// different classes are all simulated.
///
/// Sums along one path miss what the latest of several nearly critical paths is late by: of four pipeline stages, half of the
/// excess. So the mean and the variance of what the groups that meet last differ by are not these sums' where pilots have been:
/// draws before, of which each tells when its one member arrived against the undisturbed step (`ArrivalPilots`), the second half
/// of them with what the first half told. The share of the variance that lasts is still the sums'. Pilots are of any member: what
/// a collective that runs beside kernels takes from those of the last member, for whom alone it begins at once, is missing.
class Arrivals {
 public:
  /// All must outlive it.
  Arrivals(const Dag& dag, const JitterDraw& draw, const ArrivalPilots& pilots);

  /// A unit ended: its successors can come after it from this date on.
  void ended(std::span<const TaskId> unit, Seconds date);
  /// Returns the date at which the last of all members ends its work, of those tasks that ended so far.
  Seconds end_of_step() const { return end_of_step_; }
  /// A task was issued, perhaps later than all that it depends on had ended.
  void waited_for_host(TaskId task, Seconds issued);

  /// Tells that all simulated members of a collective are there. Returns when the last of all members is, which is this date or a
  /// later one.
  Seconds meet(std::span<const TaskId> unit, Seconds now);

  /// Returns of a pilot, for each arrival (see `ArrivalPlan`), how late the simulated member was, of what it has not in common
  /// with the others that it met; NaN where it met none.
  const std::vector<double>& excesses() const { return excesses_; }

  /// A kernel is `undisturbed` with this rank at mean speed, and takes `time`.
  void compute(TaskId task, Seconds undisturbed, Seconds time);
  void communicate(std::span<const TaskId> unit, Seconds undisturbed, Seconds time);

 private:
  using ArrivalId = std::size_t;
  /// One of those that a collective waits for. The simulated member may have waited for another, and its peers for this one.
  struct Awaited {
    Seconds end = 0;
    Seconds late = 0;  ///< against the undisturbed step
    ArrivalId arrival = 0;
    LateHistories::Holder history;
    std::uint32_t next = no_id;  ///< that the same collective waits for
  };
  struct TaskState {
    Seconds ready = 0;
    LateHistories::Holder history;                              ///< up to its start, then its end; none: nothing
    std::uint32_t first_awaited = no_id, last_awaited = no_id;  ///< of communication, in `awaited_`
  };
  /// A part that is worked on.
  struct Sum {
    LatePart part;
    std::vector<LastingDeviation> lasting;

    double lasting_variance() const;
    void scale_lasting(double factor);
  };
  /// A part that members have apart.
  struct Apart {
    std::size_t groups = 0;  ///< of members that have it in common
    std::size_t part = 0;
  };
  /// The slowest speeds of the members that are not simulated, from the largest score down, and the moments of the others'.
  struct Scores {
    std::vector<double> slowest;
    double mean_of_rest = 0, variance_of_rest = 0;
  };
  static constexpr std::size_t lasting_scores = 64;
  static constexpr CommunicatorId whole_class = no_id;  ///< that meets at the end of the step

  const Dag& dag_;
  JitterDraw draw_;
  const ArrivalPilots& pilots_;
  std::vector<double> excesses_;  ///< by arrival, of a pilot
  Seconds end_of_step_ = 0;
  RankSpans spans_;
  LateHistories histories_;
  std::vector<TaskState> tasks_;
  std::vector<Awaited> awaited_;
  std::vector<std::uint32_t> free_awaited_;
  std::map<std::size_t, LargestNormal> largest_;
  std::map<std::tuple<RankIndex, CommunicatorId, std::size_t>, Scores> scores_;

  // What `met` works on, kept for its memory.
  std::vector<Apart> apart_;
  Sum sum_;
  LateHistory after_, after_last_;

  void await(TaskState& by, const Awaited& awaited);
  Seconds met(TaskId task, const Awaited& awaited, CommunicatorId communicator, std::size_t members);
  void find_apart(const LateHistory& history, CommunicatorId communicator, std::size_t members, Seconds& in_common, SpanId& span);
  void correct(Sum& sum, ArrivalId arrival) const;
  double latest_excess(const Sum& sum, std::size_t others, TaskId task, CommunicatorId communicator, std::size_t level);
  const Scores& scores(RankIndex rank, CommunicatorId communicator, std::size_t others);
  void become_largest(Sum& sum, std::size_t groups);
};

}  // namespace tandem::sim
