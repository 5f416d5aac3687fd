#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "topology/fabric.h"

namespace tandem::topology {

/// Vertices are switches by number; an edge is a bundle that still carries something, and knows its number.
struct Fabric::Graph : boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, std::uint32_t> {
  using adjacency_list::adjacency_list;
};

}  // namespace tandem::topology
