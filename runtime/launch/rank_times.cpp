#include "runtime/launch/rank_times.h"

#include <cstring>
#include <stdexcept>

namespace tandem {
namespace {

/// Of one task.
struct Times {
  Seconds start, end;
};

}  // namespace

std::string own_times(const Dag& dag, RankIndex rank, const Timeline& timeline) {
  std::string bytes;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != rank) continue;
    const Times times{timeline.start[id], timeline.end[id]};
    bytes.append(reinterpret_cast<const char*>(&times), sizeof times);
  }
  return bytes;
}

Timeline times_of_all(const Dag& dag, const std::vector<std::string>& by_rank) {
  Timeline timeline{.start = std::vector<Seconds>(dag.tasks.size()), .end = std::vector<Seconds>(dag.tasks.size())};
  std::vector<std::size_t> read(dag.ranks.size(), 0);  // bytes of each rank
  const auto refuse = [](RankIndex rank) {
    throw std::runtime_error("rank " + std::to_string(rank) + " sent other measurements than its tasks'");
  };
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const RankIndex rank = dag.tasks[id].rank;
    Times times{};
    if (rank >= by_rank.size() || by_rank[rank].size() - read[rank] < sizeof times) refuse(rank);
    std::memcpy(&times, by_rank[rank].data() + read[rank], sizeof times);
    read[rank] += sizeof times;
    timeline.start[id] = times.start;
    timeline.end[id] = times.end;
  }
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank)
    if (rank >= by_rank.size() || by_rank[rank].size() != read[rank]) refuse(rank);
  return timeline;
}

}  // namespace tandem
