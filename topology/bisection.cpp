#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>

#include "topology/fabric.h"

namespace tandem::topology {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                          boost::property<boost::edge_capacity_t, long,
                                          boost::property<boost::edge_residual_capacity_t, long,
                                                          boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// Adds one direction of a link, and beside it the reverse edge without capacity that the algorithm wants.
void add(FlowGraph& graph, std::size_t from, std::size_t to, long capacity) {
  const auto one = boost::add_edge(from, to, graph).first;
  const auto other = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, one, capacity);
  boost::put(boost::edge_capacity, graph, other, 0L);
  boost::put(boost::edge_reverse, graph, one, other);
  boost::put(boost::edge_reverse, graph, other, one);
}

}  // namespace

// The bisection is a maximum flow: the NICs of the lower nodes send, those of the upper ones receive, each as much as its port
// lets it. Capacities are in whole MB/s, because sums of fractions would not come out even.
BytesPerSecond Fabric::bisection(BytesPerSecond port) const {
  constexpr double unit = 1e6;
  const std::size_t switches = switches_.size();
  FlowGraph graph(switches + 2);
  std::vector<double> sends(switches, 0), receives(switches, 0);
  const std::int64_t half = nics_ / nics_per_node_ / 2 * nics_per_node_;
  for (std::int64_t nic = 0; nic < half; ++nic) sends[leaf_of(nic)] += port / unit;
  for (std::int64_t nic = nics_ - half; nic < nics_; ++nic) receives[leaf_of(nic)] += port / unit;
  for (std::size_t s = 0; s < switches; ++s) {
    if (sends[s] > 0) add(graph, switches, s, std::lround(sends[s]));
    if (receives[s] > 0) add(graph, s, switches + 1, std::lround(receives[s]));
  }
  for (const Bundle& bundle : bundles_) {
    const long mega = std::lround(capacity(bundle.id) / unit);
    add(graph, bundle.lower, bundle.upper, mega);
    add(graph, bundle.upper, bundle.lower, mega);
  }
  return static_cast<double>(boost::push_relabel_max_flow(graph, switches, switches + 1)) * unit;
}

}  // namespace tandem::topology
