#pragma once

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/dag/timeline.h"
#include "sim/collective_cost.h"
#include "studies/step/exact_units.h"
#include "studies/step/fair_rates.h"

namespace tandem::studies {

/// The flows of a step that was simulated on an even fold (see make_world), from event to event, and their rates on the links of
/// the exact one. Those that ended before trees could matter are left out.
class FlowsInAir {
 public:
  /// All must outlive it. Times of up to `shortest` between two events do not count.
  FlowsInAir(const World& exact, const World& even, const ExactUnits& units, const Dag& dag, const Timeline& timeline,
             sim::CollectiveCosts& costs, Seconds shortest);

  /// What of the exact fold flows otherwise than the even fold says.
  struct Others {
    std::set<ExactUnit> absent;         ///< of those in the air
    std::vector<ExactUnit> in_the_air;  ///< on their own: they replace absent ones, or those of other times
  };
  struct Rates {
    std::vector<BytesPerSecond> of_others;                         ///< of those in the air, in their order
    std::vector<std::pair<ExactUnit, BytesPerSecond>> unexpected;  ///< of the rest, where it is not that of the even fold
  };

  bool at_end() const { return next_ == events_.size(); }
  Seconds next_date() const { return events_[next_].date; }
  /// A flow that begins or ends.
  struct Change {
    GroupId group = 0;
    bool begins = false;
  };
  Change advance();

  /// Of a group that ends after the first tree has begun.
  bool is_flow(GroupId group) const { return span_of_[group] != no_id; }
  bool is_in_the_air(GroupId group) const;
  /// Whether any rates may be other than those of the even fold: else nothing in the air has to do with trees, or with others.
  bool may_differ(const Others& others) const { return trees_ > 0 || !others.absent.empty() || !others.in_the_air.empty(); }
  Rates rates_with(const Others& others);
  /// What is left to move at a date, not before that of the last event, by channel, of a flow in the air.
  double bytes_left(GroupId group, Seconds date);

 private:
  /// Flows that share links alike.
  using Kind = std::uint32_t;
  struct Span {
    Kind kind = 0;
    GroupId group = 0;
    Bytes bytes = 0;
    std::size_t begins = 0;  ///< index into `events_`
  };
  struct Event {
    Seconds date = 0;
    bool begins = false;
    std::uint32_t span = 0;
  };
  using Active = std::set<std::pair<Kind, GroupId>>;
  /// Kinds of the even fold; those absent and those in the air on their own, by their communicators in the exact fold.
  struct Mix {
    std::vector<Kind> even;
    std::vector<std::pair<Kind, CommunicatorId>> absent, others;
    auto operator<=>(const Mix&) const = default;
  };
  struct MixRates {
    std::vector<BytesPerSecond> of_others;
    std::vector<std::tuple<Kind, CommunicatorId, BytesPerSecond>> unexpected;
  };

  const World &exact_, &even_;
  const ExactUnits& units_;
  Seconds shortest_;
  std::vector<SharingFlow> kinds_;
  std::vector<bool> is_tree_;              ///< by kind
  std::vector<std::vector<bool>> shares_;  ///< links in the even fold, by two kinds
  std::vector<Span> spans_;
  std::vector<std::uint32_t> span_of_;  ///< by group; `no_id` where it is no flow
  std::vector<Event> events_;
  std::size_t next_ = 0;
  Active active_;
  std::size_t trees_ = 0;  ///< in the air
  std::map<Mix, MixRates> known_;
  std::map<std::vector<Kind>, std::vector<BytesPerSecond>> known_even_;

  void find_who_shares();
  Kind kind_of(const ExactUnit& unit) const { return spans_[span_of_[unit.what]].kind; }
  /// Those of `active` that have to do with one of `from`, over any number of flows between.
  std::vector<Kind> connected(const Active& active, std::vector<Kind> from) const;
  const std::vector<BytesPerSecond>& even_rates(const std::vector<Kind>& kinds);
  MixRates compute(const Mix& mix);
};

}  // namespace tandem::studies
