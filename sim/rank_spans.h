#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

using SpanId = std::uint32_t;

/// Sets of world ranks whose clocks agree because collectives have made them wait for each other. Sets are known up to their
/// place: as distances from their lowest rank, which are the same for all communicators of a class, since ranks are numbered
/// digit by digit along the axes of a mesh.
class RankSpans {
 public:
  explicit RankSpans(const Dag& dag);

  static constexpr SpanId one = 0;  ///< a rank alone

  /// Returns the span of a communicator's members.
  SpanId of(CommunicatorId communicator) const { return of_communicator_[communicator]; }
  /// Returns who agrees when ranks that agree over one of the spans have met over the other: the span that contains the other, or
  /// else all that is reached by a step of each.
  SpanId joined(SpanId left, SpanId right);
  std::size_t size(SpanId span) const { return sets_[span].size(); }
  /// Returns how many of the communicator's members agree with a member over the span, that member counted.
  std::size_t in_common(SpanId span, CommunicatorId communicator) { return in_common_of(span, of(communicator)); }

 private:
  using Distances = std::vector<std::int64_t>;  ///< ascending, the first 0
  std::vector<Distances> sets_{{0}};
  std::map<Distances, SpanId> ids_{{{0}, one}};
  std::vector<SpanId> of_communicator_;
  std::map<std::pair<SpanId, SpanId>, SpanId> joined_;
  std::vector<std::vector<std::uint32_t>> common_;  ///< by span and span; 0: not known yet, as all hold a member itself

  SpanId id_of(Distances distances);
  std::size_t in_common_of(SpanId span, SpanId members);
};

}  // namespace tandem::sim
