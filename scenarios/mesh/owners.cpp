#include "scenarios/mesh/owners.h"

#include <algorithm>

#include "runtime/base/divide_up.h"
#include "scenarios/mesh/expert_mesh.h"

namespace tandem::scenarios {
namespace {

/// At most so many weights of one layer have matrices: latent attention's five, a mixture's five, the projection of what predicts
/// further tokens; an indexer's three, the latent projections of experts, what attention to compressed keys has beyond that to
/// latents, and of several residual streams the gates of both halves and the projection of a later token.
std::int64_t most_of_layer(const ModelSpec& model) {
  return 11 + (model.indexer.enabled() ? 3 : 0) + (model.moe.latent > 0 ? 2 : 0) + (model.compressed.enabled() ? 6 : 0) +
         (model.hyper.enabled() ? 3 : 0);
}

/// At most so many weights of a model chunk have matrices.
std::int64_t most_of_chunk(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t stated = (p.first_stage_layers > 0 ? 1 : 0) + (p.last_stage_layers > 0 ? 1 : 0);
  const std::int64_t others = std::max<std::int64_t>(1, p.pp - stated);
  const std::int64_t ends = 2;  // the embedding and the loss may take a layer's place
  const std::int64_t layers =
      std::max({divide_up(scenario.model.layers + ends, others), p.first_stage_layers, p.last_stage_layers});
  return most_of_layer(scenario.model) * (divide_up(layers, p.vpp) + scenario.model.mtp_depth);
}

}  // namespace

std::int64_t place_in_data_group(const Mesh& mesh, std::uint32_t rank) {
  const std::vector<std::uint32_t> members = mesh.members(rank, {Axis::cp, Axis::ep, Axis::dp});
  return std::ranges::lower_bound(members, rank) - members.begin();
}

std::vector<std::uint32_t> muon_shares(const Scenario& scenario, const Mesh& mesh) {
  const ExpertMesh experts(scenario.parallelism, mesh);
  const std::int64_t places = most_of_chunk(scenario) + 1;
  std::vector<std::uint32_t> shares;
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    const std::int64_t dense = std::min(place_in_data_group(mesh, rank), places - 1);
    const std::int64_t expert =
        scenario.model.moe.experts > 0 ? std::min<std::int64_t>(experts.place(rank).replica, places - 1) : 0;
    shares.push_back(static_cast<std::uint32_t>(dense * places + expert));
  }
  return shares;
}

}  // namespace tandem::scenarios
