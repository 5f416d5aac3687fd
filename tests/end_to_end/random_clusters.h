#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// A mesh of up to 64 ranks on a cluster with whatever can make its ranks and links unequal, drawn from a seed: the same on every
/// machine. The whole model is a few kernels, so that transfers overlap with each other.
struct RandomCluster {
  std::uint32_t seed = 0;
  std::vector<std::string> overrides;  ///< of `tiny_cluster`
  std::set<std::string> features;      ///< by name, for counts
  Scenario scenario;
  World folded;

  std::string text() const;  ///< seed and overrides, to repeat it
};

/// Of the seeds `first`, `first` + `stride`, ..., every one that is valid, until there are `count`. Fabrics that faults cut in
/// two are not. Most are: else fewer come back.
std::vector<RandomCluster> random_clusters(std::size_t count, std::uint32_t first, std::uint32_t stride);

/// A network for a mesh of so many ranks, with whatever can make its ranks and links unequal: nodes, fabric, placement and
/// faults, as overrides, each of which may be refused beside those before it.
std::vector<std::string> random_network(std::uint32_t seed, int ranks);

}  // namespace tandem::studies
