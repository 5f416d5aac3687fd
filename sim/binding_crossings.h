#pragma once

#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// What of each path can hold its flows back: its crossings of links that may be full (see runtime/dag/nonbinding_links.h). Flows
/// that have none of these in common do not meet.
class BindingCrossings {
 public:
  /// `links` are those of the DAG, at the speeds that they are simulated at.
  BindingCrossings(const Dag& dag, const std::vector<Link>& links);

  std::span<const Crossing> of(CommunicatorId communicator, std::uint32_t path) const {
    const std::size_t at = first_path_[communicator] + path;
    return std::span(crossings_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }

 private:
  std::vector<std::size_t> first_path_;  ///< by communicator
  std::vector<std::size_t> begin_;       ///< by path
  std::vector<Crossing> crossings_;
};

}  // namespace tandem::sim
