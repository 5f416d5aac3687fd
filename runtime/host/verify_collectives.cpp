#include "runtime/host/verify_collectives.h"

#include <algorithm>
#include <barrier>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/analysis/distinct_collectives.h"
#include "runtime/host/backend.h"

namespace tandem {
namespace {

// The contents are those of nccl-tests in spirit (its src/verifiable/): small whole numbers, whose sums fp32 holds exactly.
// Member p gives element e of the whole vector the value 256 (p + 1) + e mod 251: a wrong member shows in the high digit, a
// shifted element in the low one, 251 being a prime that divides no usual size. With n members
//   sum = 256 n (n + 1) / 2 + n (e mod 251),   max = 256 n + e mod 251,
// and the sum stays below 2^24, the last of the whole numbers without gaps in fp32, up to 360 members.
constexpr std::size_t pattern_period = 251;
constexpr std::size_t member_weight = 256;
constexpr std::size_t largest_exact_size = 360;

float crafted(std::size_t member, std::size_t element) {
  return static_cast<float>(member_weight * (member + 1) + element % pattern_period);
}

float crafted_sum(std::size_t members, std::size_t element) {
  const std::size_t sum_of_numbers = members * (members + 1) / 2;
  return static_cast<float>(member_weight * sum_of_numbers + members * (element % pattern_period));
}

/// 128 (n + 1) + e mod 251: whole, too.
float crafted_mean(std::size_t members, std::size_t element) {
  const std::size_t mean = member_weight * (members + 1) / 2;
  return static_cast<float>(mean + element % pattern_period);
}

float expected(const Collective& collective, std::size_t member, std::size_t element) {
  const std::size_t count = collective.members.size();
  const std::size_t shard = collective.members[member].out.size();
  const auto reduced = [&](std::size_t e) {
    if (collective.reduction == Reduction::max) return crafted(count - 1, e);
    return collective.reduction == Reduction::mean ? crafted_mean(count, e) : crafted_sum(count, e);
  };
  switch (collective.op) {
    case OpKind::all_reduce:
    case OpKind::reduce:
      return reduced(element);
    case OpKind::scatter:
      return crafted(collective.root, member * shard + element);
    case OpKind::broadcast:
      return crafted(collective.root, element);
    case OpKind::reduce_scatter:
      return reduced(member * shard + element);
    case OpKind::all_gather:
    case OpKind::gather:
      return crafted(element / (shard / count), element);
    case OpKind::all_to_all: {
      const std::size_t piece = shard / count;
      return crafted(element / piece, member * piece + element % piece);
    }
    default:
      return crafted(0, element);
  }
}

/// Memory for the operands of one collective, apart from the step's: buffers that are views of one base overlap here as well.
class ScratchMemory {
 public:
  ScratchMemory(const Dag& dag, std::span<const TaskId> unit) : dag_(dag) {
    for (const TaskId id : unit) {
      for (const Operand& operand : dag.operands_of(id)) reserve(dag.buffers[operand.buffer]);
    }
    for (auto& [base, area] : areas_) {
      area.data.assign(static_cast<std::size_t>(area.end - area.begin), std::numeric_limits<float>::quiet_NaN());
    }
  }

  float* at(BufferId id) {
    const Buffer& buffer = dag_.buffers[id];
    Area& area = areas_.at(buffer.base);
    return area.data.data() + (buffer.offset - area.begin);
  }

 private:
  struct Area {
    std::int64_t begin = 0, end = 0;
    std::vector<float> data;
  };
  const Dag& dag_;
  std::map<BufferId, Area> areas_;

  void reserve(const Buffer& buffer) {
    const std::int64_t end = buffer.offset + buffer.shape.elements();
    Area& area = areas_.try_emplace(buffer.base, Area{buffer.offset, end, {}}).first->second;
    area.begin = std::min(area.begin, buffer.offset);
    area.end = std::max(area.end, end);
  }
};

void fill_crafted(const Collective& collective) {
  for (std::size_t p = 0; p < collective.members.size(); ++p) {
    const std::span<float> in = collective.members[p].in;
    const std::size_t first = collective.op == OpKind::all_gather || collective.op == OpKind::gather ? p * in.size() : 0;
    for (std::size_t e = 0; e < in.size(); ++e) in[e] = crafted(p, first + e);
  }
}

void check(const Collective& collective, const std::string& communicator) {
  for (std::size_t p = 0; p < collective.members.size(); ++p) {
    const std::span<const float> out = collective.members[p].out;
    for (std::size_t e = 0; e < out.size(); ++e) {
      if (out[e] == expected(collective, p, e)) continue;
      throw std::runtime_error(std::string(operation(collective.op).name) + " on communicator '" + communicator + "': element " +
                               std::to_string(e) + " of member " + std::to_string(p) + " is " + std::to_string(out[e]) +
                               " instead of " + std::to_string(expected(collective, p, e)));
    }
  }
}

/// One thread per member, as in the step.
void run_in_threads(const Collective& collective) {
  CollectiveExchange exchange(collective);
  std::barrier all_contributed(static_cast<std::ptrdiff_t>(exchange.members()));
  std::vector<std::jthread> threads;
  for (std::size_t member = 0; member < exchange.members(); ++member) {
    threads.emplace_back([&, member] {
      exchange.contribute(member);
      all_contributed.arrive_and_wait();
      exchange.collect(member);
    });
  }
}

}  // namespace

std::size_t verify_collectives(const Dag& dag, const CollectiveRunner& run) {
  const std::vector<GroupId> distinct = distinct_collectives(dag);
  for (const GroupId id : distinct) {
    const std::span<const TaskId> unit = dag.members_of(id);
    ScratchMemory memory(dag, unit);
    const Collective collective = collective_of(dag, unit, [&](BufferId buffer) { return memory.at(buffer); });
    const std::string& communicator = dag.communicators[dag.groups[id].communicator].name;
    if (unit.size() > largest_exact_size) {
      throw std::logic_error("communicator '" + communicator + "' is too large for exact sums in fp32");
    }
    fill_crafted(collective);
    run(collective);
    check(collective, communicator);
  }
  return distinct.size();
}

std::size_t verify_collectives(const Dag& dag) { return verify_collectives(dag, run_in_threads); }

}  // namespace tandem
