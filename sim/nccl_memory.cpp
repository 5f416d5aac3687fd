#include "sim/nccl_memory.h"

#include <vector>

#include "sim/nccl_channels.h"
#include "sim/nccl_constants.h"

namespace tandem::sim {
namespace {

constexpr Bytes kibi = 1024;
constexpr Bytes connection_buffers = 512 * kibi + 4800 * kibi + 4096 * kibi;  // LL, LL128, Simple

Bytes buffers_of(const Communicator& communicator, Architecture architecture) {
  const std::size_t members = communicator.members.size();
  if (members < 2 || architecture == Architecture::unknown) return 0;
  const NcclConstants::Channels& constants = nccl_constants().channels[static_cast<std::size_t>(architecture)];
  const Bytes channels = most_channels(members, communicator.layout, constants);
  const Bytes of_ring = 1, of_tree = members == 2 ? 1 : 2;
  return channels * (of_ring + of_tree) * connection_buffers;
}

}  // namespace

Bytes nccl_memory(const Dag& dag, const ByRank& tasks, RankIndex rank) {
  const Architecture architecture = dag.devices[dag.ranks[rank].device].architecture;
  Bytes bytes = 0;
  // A folded rank may stand for both ends of a pair: it then sends and receives through one.
  std::vector<bool> seen(2 * dag.communicators.size());
  tasks.for_each(rank, [&](TaskId id) {
    const Task& task = dag.tasks[id];
    if (task.group == no_id) return;
    const CommunicatorId over = dag.groups[task.group].communicator;
    const std::size_t end = 2 * std::size_t{over} + (task.op == OpKind::receive ? 1 : 0);
    if (seen[end]) return;
    seen[end] = true;
    bytes += buffers_of(dag.communicators[over], architecture);
  });
  return bytes;
}

}  // namespace tandem::sim
