#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "runtime/cuda/emulation/nccl_functions.h"
#include "runtime/host/collectives.h"

namespace tandem {

/// The step's memory by base buffer, every element a random number, the same for one seed.
class RandomMemory {
 public:
  RandomMemory(const Dag& dag, std::span<const TaskId> unit, std::uint32_t seed) : dag_(dag) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const TaskId id : unit) {
      for (const Operand& operand : dag.operands_of(id)) {
        const BufferId base = dag.buffers[operand.buffer].base;
        const auto [memory, added] = bases_.try_emplace(base, static_cast<std::size_t>(dag.buffers[base].shape.elements()));
        if (added) std::ranges::generate(memory->second, [&] { return uniform(random); });
      }
    }
  }
  float* at(BufferId id) { return id == no_id ? nullptr : bases_.at(dag_.buffers[id].base).data() + dag_.buffers[id].offset; }
  bool operator==(const RandomMemory& other) const { return bases_ == other.bases_; }

 private:
  const Dag& dag_;
  std::map<BufferId, std::vector<float>> bases_;
};

/// What one rank of a communicator hands to NCCL.
struct NcclRank {
  NcclCall call;
  const float* send = nullptr;
  float* receive = nullptr;
};

/// What the calls of all ranks of one communicator, in their order, do to their memory. Everything is read before anything is
/// written, as when a collective is in place.
inline void carry_out(std::span<const NcclRank> ranks) {
  std::vector<NcclCall> calls;
  std::vector<std::vector<float>> sent;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    calls.push_back(ranks[rank].call);
    const std::size_t elements = elements_read(calls.back(), rank, ranks.size());
    EXPECT_TRUE(elements == 0 || ranks[rank].send != nullptr);
    sent.emplace_back(ranks[rank].send, ranks[rank].send + elements);
  }
  EXPECT_TRUE(belong_together(calls));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    std::ranges::copy(received(calls[rank], sent, rank), ranks[rank].receive);
}

/// The planned calls of a collective's members leave the same numbers everywhere as the host's collective.
inline void expect_calls_do_as_the_host(const Dag& dag, GroupId group) {
  const std::span<const TaskId> unit = dag.members_of(group);
  RandomMemory by_nccl(dag, unit, group), by_host(dag, unit, group);
  const std::vector<std::uint32_t>& members = dag.communicators[dag.groups[group].communicator].members;
  std::vector<NcclRank> ranks(unit.size());
  for (const TaskId id : unit) {
    const auto place = std::ranges::find(members, dag.ranks[dag.tasks[id].rank].world_rank) - members.begin();
    const NcclCall call = plan_call(dag, id);
    ranks.at(static_cast<std::size_t>(place)) = {call, by_nccl.at(call.send), by_nccl.at(call.receive)};
  }
  carry_out(ranks);

  CollectiveExchange exchange(collective_of(dag, unit, [&](BufferId id) { return by_host.at(id); }));
  for (std::size_t member = 0; member < exchange.members(); ++member) exchange.contribute(member);
  for (std::size_t member = 0; member < exchange.members(); ++member) exchange.collect(member);
  EXPECT_TRUE(by_nccl == by_host) << operation(dag.tasks[unit.front()].op).name << " of " << unit.size() << " members";
}

}  // namespace tandem
