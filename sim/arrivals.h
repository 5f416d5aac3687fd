#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/order_statistics.h"
#include "runtime/dag/timeline.h"
#include "sim/jitter.h"
#include "sim/rank_spans.h"

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
/// draws before, of which each tells when its one member arrived against the undisturbed step (`ArrivalPilots`). The share of the
/// variance that lasts is still the sums'. Pilots are of any member: what a collective that runs beside kernels takes from those
/// of the last member, for whom alone it begins at once, is missing.
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

  /// Returns for each arrival (see `ArrivalPilots`) how late the simulated member was, of what it has not in common with the
  /// others that it met; NaN where it met none.
  const std::vector<double>& excesses() const { return excesses_; }

  /// A kernel is `undisturbed` with this rank at mean speed, and takes `time`.
  void compute(TaskId task, Seconds undisturbed, Seconds time);
  void communicate(std::span<const TaskId> unit, Seconds undisturbed, Seconds time);

 private:
  struct Part {
    SpanId span = RankSpans::one;
    Seconds undisturbed = 0;                               ///< the work
    Seconds own = 0;                                       ///< excess of the simulated member
    Seconds mean = 0;                                      ///< expected excess of any
    double variance = 0;                                   ///< without what lasts
    std::vector<std::pair<RankIndex, Seconds>> lasting{};  ///< standard deviations from the speeds of ranks of these classes
    RankIndex rank = no_id;                                ///< the class that worked; no_id: communication alone
    bool is_of_several = false;                            ///< classes

    double lasting_variance() const;
    void add(const Part& other);
  };
  struct History {
    Seconds base = 0;         ///< what the work began late by
    std::vector<Part> parts;  ///< spans distinct, the smallest first
  };
  using ArrivalId = std::size_t;
  /// One of those that a collective waits for. The simulated member may have waited for another, and its peers for this one.
  struct Awaited {
    Seconds end = 0;
    Seconds late = 0;  ///< against the undisturbed step
    ArrivalId arrival = 0;
    std::shared_ptr<History> history;
  };
  struct Meeting {
    Seconds delay = 0;
    History after;
  };
  static constexpr std::size_t lasting_scores = 64;
  static constexpr CommunicatorId whole_class = no_id;  ///< that meets at the end of the step

  const Dag& dag_;
  JitterDraw draw_;
  const ArrivalPilots& pilots_;
  std::vector<ArrivalId> first_arrival_;  ///< by task
  std::vector<double> excesses_;
  Seconds end_of_step_ = 0;
  RankSpans spans_;
  std::vector<Seconds> ready_;                     ///< by task
  std::vector<std::shared_ptr<History>> history_;  ///< by task: up to its start, then its end; null: nothing
  std::vector<std::vector<Awaited>> awaited_;      ///< by task that is communication
  std::vector<double> members_of_world_;           ///< by group: how many ranks its lowered members stand for
  std::map<std::size_t, LargestNormal> largest_;
  std::map<std::tuple<RankIndex, CommunicatorId, std::size_t>, std::vector<double>> scores_;

  History& own_history(TaskId task);
  Part& part(History& history, SpanId span);
  Meeting met(TaskId task, const Awaited& awaited, CommunicatorId communicator, std::size_t members);
  void correct(Part& part, ArrivalId arrival) const;
  double latest_excess(const Part& part, std::size_t others, TaskId task, CommunicatorId communicator, std::size_t level);
  const std::vector<double>& scores(RankIndex rank, CommunicatorId communicator, std::size_t others);
  Part largest_of(Part part, std::size_t groups);
};

}  // namespace tandem::sim
