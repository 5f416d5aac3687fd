#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "runtime/cuda/nccl_call.h"
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

/// The functions as NCCL's header describes them, over the ranks of one communicator in their order. Everything is read before
/// anything is written, as when a collective is in place.
class NcclReference {
 public:
  explicit NcclReference(std::vector<NcclRank> ranks) : ranks_(std::move(ranks)) {}

  void run() {
    expect_equal_calls();
    for (const NcclRank& rank : ranks_) sent_.push_back(read(rank));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) receive(rank);
  }

 private:
  using Vector = std::vector<float>;
  std::vector<NcclRank> ranks_;
  std::vector<Vector> sent_;

  bool is_root(std::size_t rank) const { return static_cast<int>(rank) == ranks_[rank].call.peer; }

  void expect_equal_calls() const {
    for (const auto& [call, send, receive] : ranks_) {
      const NcclCall& first = ranks_.front().call;
      const bool transfer = first.function == NcclFunction::send || first.function == NcclFunction::receive;
      EXPECT_EQ(call.count, first.count);
      EXPECT_EQ(call.type, first.type);
      EXPECT_EQ(call.reduction, first.reduction);
      if (transfer) continue;
      EXPECT_EQ(call.function, first.function);
      EXPECT_EQ(call.peer, first.peer);
    }
  }

  /// How many elements of its send buffer a rank's call reads.
  std::size_t read_elements(std::size_t rank) const {
    const NcclCall& call = ranks_[rank].call;
    switch (call.function) {
      case NcclFunction::reduce_scatter:
      case NcclFunction::all_to_all:
        return call.count * ranks_.size();
      case NcclFunction::scatter:
        return is_root(rank) ? call.count * ranks_.size() : 0;
      case NcclFunction::broadcast:
        return is_root(rank) ? call.count : 0;
      case NcclFunction::receive:
        return 0;
      default:
        return call.count;
    }
  }

  Vector read(const NcclRank& rank) const {
    const std::size_t elements = read_elements(static_cast<std::size_t>(&rank - ranks_.data()));
    EXPECT_TRUE(elements == 0 || rank.send != nullptr);
    return elements == 0 ? Vector() : Vector(rank.send, rank.send + elements);
  }

  float reduced(std::size_t element) const {
    const Reduction reduction = ranks_.front().call.reduction;
    float result = sent_.front()[element];
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      const float next = sent_[rank][element];
      result = reduction == Reduction::max ? std::max(result, next) : result + next;
    }
    return reduction == Reduction::mean ? result / static_cast<float>(ranks_.size()) : result;
  }

  void receive(std::size_t rank) {
    const NcclCall& call = ranks_[rank].call;
    float* const out = ranks_[rank].receive;
    const auto root = static_cast<std::size_t>(call.peer);
    const std::size_t count = call.count;
    for (std::size_t e = 0; e < count; ++e) {
      for (std::size_t other = 0; other < ranks_.size(); ++other) {
        const std::size_t place = other * count + e;
        if (call.function == NcclFunction::all_gather) out[place] = sent_[other][e];
        if (call.function == NcclFunction::all_to_all) out[place] = sent_[other][rank * count + e];
        if (call.function == NcclFunction::gather && is_root(rank)) out[place] = sent_[other][e];
      }
      if (call.function == NcclFunction::all_reduce) out[e] = reduced(e);
      if (call.function == NcclFunction::reduce && is_root(rank)) out[e] = reduced(e);
      if (call.function == NcclFunction::reduce_scatter) out[e] = reduced(rank * count + e);
      if (call.function == NcclFunction::broadcast) out[e] = sent_[root][e];
      if (call.function == NcclFunction::scatter) out[e] = sent_[root][rank * count + e];
      if (call.function == NcclFunction::receive) out[e] = sent_.at(root).at(e);
    }
    if (call.function == NcclFunction::send) {
      EXPECT_EQ(ranks_.at(root).call.function, NcclFunction::receive);
    }
  }
};

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
  NcclReference(ranks).run();

  CollectiveExchange exchange(collective_of(dag, unit, [&](BufferId id) { return by_host.at(id); }));
  for (std::size_t member = 0; member < exchange.members(); ++member) exchange.contribute(member);
  for (std::size_t member = 0; member < exchange.members(); ++member) exchange.collect(member);
  EXPECT_TRUE(by_nccl == by_host) << operation(dag.tasks[unit.front()].op).name << " of " << unit.size() << " members";
}

}  // namespace tandem
