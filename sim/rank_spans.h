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
  explicit RankSpans(const Dag& dag) : dag_(dag), of_communicator_(dag.communicators.size(), no_id) {}

  static constexpr SpanId one = 0;  ///< a rank alone

  /// Returns the span of a communicator's members.
  SpanId of(CommunicatorId communicator);
  /// Returns who agrees when ranks that agree over one of the spans have met over the other: the span that contains the other, or
  /// else all that is reached by a step of each.
  SpanId joined(SpanId left, SpanId right);
  std::size_t size(SpanId span) const { return sets_[span].size(); }
  /// Returns how many of the communicator's members agree with a member over the span, that member counted.
  std::size_t in_common(SpanId span, CommunicatorId communicator);

 private:
  using Distances = std::vector<std::int64_t>;  ///< ascending, the first 0
  const Dag& dag_;
  std::vector<Distances> sets_{{0}};
  std::map<Distances, SpanId> ids_{{{0}, one}};
  std::vector<SpanId> of_communicator_;  ///< no_id: not known yet
  std::map<std::pair<SpanId, SpanId>, SpanId> joined_;
  std::map<std::pair<SpanId, SpanId>, std::size_t> common_;

  SpanId id_of(Distances distances);
};

}  // namespace tandem::sim
