#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/network.h"

namespace tandem {

/// A flow of rate x on this path uses `times * x` of the link's capacity. What is said of one path and link adds up.
struct PathUse {
  std::uint32_t path = 0;
  LinkId link = 0;
  std::uint32_t times = 1;
};

/// Tells which links never hold a flow back, whatever runs: what enters them has passed others, and these let through no more
/// than they can carry. Such are the links up from a leaf switch that are as fast as all NICs below it.
///
/// Link l is full at most when all that it is crossed by uses `sum over paths p of times(l, p) * x(p) = capacity(l)`. If there
/// are factors f of other links with
///
///   sum over links n of f(n) * times(n, p) >= times(l, p)      for each path p
///   sum over links n of f(n) * capacity(n) <= capacity(l)
///
/// then the inequality of l follows from theirs for any number of flows on any of the paths. So the rates that are possible are
/// the same without it, and so is the max-min fair one among them. Here each path is assigned to one slower link that it
/// crosses, and a link takes the factor that the worst of its paths needs; where other factors alone would do, the link counts
/// as one that binds. Links that were found not to bind vouch for no other.
std::vector<bool> nonbinding_links(const std::vector<BytesPerSecond>& capacities, const std::vector<PathUse>& uses);

}  // namespace tandem
