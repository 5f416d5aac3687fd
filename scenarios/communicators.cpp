#include "scenarios/communicators.h"

#include <array>
#include <bit>

namespace tandem {
namespace {

constexpr std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }

class Surveyor {
 public:
  Surveyor(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster)
      : scenario_(scenario), mesh_(mesh), cluster_(cluster) {
    found_.fold.slots.assign(slot_count, std::vector<std::uint32_t>(static_cast<std::size_t>(mesh.size()), FoldInput::absent));
  }

  CommunicatorSurvey survey() {
    const ParallelismSpec& p = scenario_.parallelism;
    groups(Slot::tp, {MeshAxis::tp}, true);
    groups(Slot::data, {MeshAxis::cp, MeshAxis::dp}, true);
    // Carries one number, whose bandwidth is nothing to anybody: latency alone.
    if (p.zero >= 1) {
      groups(Slot::gradient_norm, {MeshAxis::tp, MeshAxis::cp, MeshAxis::dp, MeshAxis::pp}, false);
    } else {
      groups(Slot::gradient_norm, {MeshAxis::tp, MeshAxis::pp}, false);
    }
    if (p.pp > 1) {
      if (scenario_.model.tied_embeddings) tie_first_and_last_stage();
      pairs();
    }
    return std::move(found_);
  }

 private:
  const Scenario& scenario_;
  const Mesh& mesh_;
  const Cluster& cluster_;
  CommunicatorSurvey found_;

  void groups(Slot slot, const std::vector<MeshAxis>& axes, bool on_links) {
    std::vector<std::uint32_t>& of_rank = found_.fold.slots[index(slot)];
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      if (of_rank[rank] != FoldInput::absent) continue;
      const std::vector<std::uint32_t> members = mesh_.members(rank, axes);
      if (members.size() < 2) return;
      PhysicalRing ring = cluster_.ring(members);
      if (!on_links) ring.crossings.clear();
      const std::uint32_t id = add(slot, static_cast<std::uint32_t>(members.size()), ring);
      for (const std::uint32_t member : members) of_rank[member] = id;
    }
  }

  void tie_first_and_last_stage() {
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      Coordinates place = mesh_.coordinates(rank);
      if (place[MeshAxis::pp] != 0) continue;
      place[MeshAxis::pp] = static_cast<std::int32_t>(scenario_.parallelism.pp - 1);
      const std::array members{rank, mesh_.rank(place)};
      const std::uint32_t id = add(Slot::embedding, 2, cluster_.ring(members));
      for (const std::uint32_t member : members) found_.fold.slots[index(Slot::embedding)][member] = id;
    }
  }

  /// From each stage to the next, and with several model chunks from the last stage on to the first.
  void pairs() {
    const auto stages = static_cast<std::int32_t>(scenario_.parallelism.pp);
    const bool wraps = scenario_.parallelism.vpp > 1;
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      Coordinates place = mesh_.coordinates(rank);
      if (place[MeshAxis::pp] == stages - 1 && !wraps) continue;
      place[MeshAxis::pp] = (place[MeshAxis::pp] + 1) % stages;
      const std::uint32_t next = mesh_.rank(place);
      pair(rank, next, Slot::send_forward, Slot::receive_forward);
      pair(next, rank, Slot::send_backward, Slot::receive_backward);
    }
  }

  void pair(std::uint32_t source, std::uint32_t destination, Slot sends, Slot receives) {
    const std::uint32_t id = add(sends, 2, cluster_.pair(source, destination));
    found_.fold.slots[index(sends)][source] = id;
    found_.fold.slots[index(receives)][destination] = id;
  }

  std::uint32_t add(Slot slot, std::uint32_t size, const PhysicalRing& ring) {
    const auto id = static_cast<std::uint32_t>(found_.instances.size());
    found_.instances.push_back({slot, size, ring.channels, ring.nodes, ring.intra_latency, ring.inter_latency});
    std::uint64_t colour = 0;
    for (const std::uint64_t part : {std::uint64_t{index(slot)}, std::uint64_t{size}, std::uint64_t{ring.channels},
                                     std::uint64_t{ring.nodes}, std::bit_cast<std::uint64_t>(ring.intra_latency),
                                     std::bit_cast<std::uint64_t>(ring.inter_latency)}) {
      colour = (colour ^ part) * 0x9E3779B97F4A7C15ULL;
      colour ^= colour >> 29;
    }
    found_.fold.communicator_colours.push_back(colour);
    for (const Crossing& crossing : ring.crossings) found_.fold.crossings.push_back({id, crossing.link, crossing.multiplicity});
    return id;
  }
};

}  // namespace

std::vector<std::uint32_t> CommunicatorSurvey::members(std::uint32_t instance) const {
  std::vector<std::uint32_t> members;
  members.reserve(instances[instance].size);
  const auto collect = [&](Slot slot) {
    const std::vector<std::uint32_t>& of_rank = fold.slots[index(slot)];
    for (std::uint32_t rank = 0; rank < of_rank.size(); ++rank) {
      if (of_rank[rank] == instance) members.push_back(rank);
    }
  };
  collect(instances[instance].slot);
  if (instances[instance].slot == Slot::send_forward) collect(Slot::receive_forward);
  if (instances[instance].slot == Slot::send_backward) collect(Slot::receive_backward);
  return members;
}

CommunicatorSurvey survey_communicators(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster) {
  return Surveyor(scenario, mesh, cluster).survey();
}

}  // namespace tandem
