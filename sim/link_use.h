#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::sim {

/// Bytes that crossed links, and when.
///
/// A collective moves what its cost says (collective_cost.h): `bytes_per_channel`, on the wire, times the multiplicity of each
/// link on its path. They are spread evenly over its time, less the latency before its first byte; over all of it where it took
/// no longer than that latency.
///
/// In a folded DAG a link is one representative of `Link::count` equal ones, and the multiplicities are those of all
/// communicators of a class together: what is told of the link is what one of these links carries in the unfolded step. Links
/// that no communicator crosses are not in a DAG, and groups that are said to take no bandwidth (gradient norms) are not counted.
struct LinkUse {
  struct User {
    std::string communicator;  ///< name of a family of communicators
    Axis axis = Axis::none;
    double bytes = 0;
  };
  struct OfLink {
    double bytes = 0;                 ///< over one link
    std::vector<double> utilisation;  ///< by bin
    std::vector<User> users;          ///< most bytes first; they add up to `bytes`
  };
  struct OfTier {
    Tier tier = Tier::nvlink;
    std::int64_t links = 0;           ///< that the DAG's links stand for
    BytesPerSecond capacity = 0;      ///< of one, the smallest
    std::vector<double> utilisation;  ///< by bin, mean over all its links
  };
  std::vector<Seconds> edges;  ///< of the bins, which are equally long; one more than bins, the last is the makespan
  std::vector<OfLink> links;   ///< by link of the DAG
  std::vector<OfTier> tiers;   ///< those that have links, innermost first
};

/// `bins` >= 1.
///
/// Utilisation is bytes over capacity * time. Collectives that share a link take turns, so that the even spread of each may add
/// up to more than the link carries; the excess is moved to the nearest bins that have room. On SimGrid's fluid network none is
/// then above 1; of an executed step, or one simulated in steps, it can be where the link carried more than the DAG says it can.
LinkUse link_use(const Dag& dag, const Timeline& timeline, std::size_t bins);

}  // namespace tandem::sim
