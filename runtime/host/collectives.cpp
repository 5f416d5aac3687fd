#include "runtime/host/collectives.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tandem {
namespace {

std::logic_error malformed(OpKind op, const std::string& what) {
  return std::logic_error(std::string(operation(op).name) + ": " + what);
}

void require_size(OpKind op, std::span<const float> operand, std::size_t elements) {
  if (operand.size() == elements) return;
  throw malformed(op, "an operand has " + std::to_string(operand.size()) + " elements instead of " + std::to_string(elements));
}

bool apart(std::span<const float> a, std::span<const float> b) {
  const std::less<const float*> before;
  return !before(a.data(), b.data() + b.size()) || !before(b.data(), a.data() + a.size());
}

/// In place, member i's shard must be the i-th part of its whole: elsewhere, NCCL would overwrite it while it is read.
void require_own_place(OpKind op, std::span<const float> shard, std::span<const float> whole, std::size_t member) {
  if (apart(shard, whole) || shard.data() == whole.data() + member * shard.size()) return;
  throw malformed(op, "the shard of member " + std::to_string(member) + " does not lie in its place of the whole");
}

std::size_t whole_elements(const Collective& collective) {
  const CollectiveMember& first = collective.members.at(0);
  switch (collective.op) {
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::scatter:
      return collective.members.at(collective.root).in.size();
    case OpKind::gather:
      return collective.members.at(collective.root).out.size();
    case OpKind::barrier:
      return 0;
    case OpKind::all_gather:
      return first.out.size();
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::send:
    case OpKind::copy:
      return first.in.size();
    default:
      throw malformed(collective.op, "not a collective");
  }
}

constexpr bool has_root(OpKind op) {
  return op == OpKind::broadcast || op == OpKind::reduce || op == OpKind::gather || op == OpKind::scatter;
}

void require_consistent_with_root(const Collective& collective, std::size_t elements) {
  const std::size_t count = collective.members.size();
  const OpKind op = collective.op;
  const bool partial = op == OpKind::gather || op == OpKind::scatter;
  if (partial && elements % count != 0) throw malformed(op, "the members' shards are not equal");
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [in, out] = collective.members[i];
    const bool root = i == collective.root;
    if (op == OpKind::broadcast) require_size(op, root ? in : out, elements);
    if (op == OpKind::reduce) require_size(op, in, elements);
    if (op == OpKind::reduce && root) require_size(op, out, elements);
    if (partial) require_size(op, op == OpKind::gather ? in : out, elements / count);
    if (op == OpKind::gather && root) require_own_place(op, in, out, i);
    if (op == OpKind::scatter && root) require_own_place(op, out, in, i);
  }
}

void require_consistent(const Collective& collective, std::size_t elements) {
  const std::size_t count = collective.members.size();
  const OpKind op = collective.op;
  if (op == OpKind::barrier) return;
  if (has_root(op)) return require_consistent_with_root(collective, elements);
  const bool sharded = op == OpKind::all_gather || op == OpKind::reduce_scatter || op == OpKind::all_to_all;
  if (sharded && elements % count != 0) throw malformed(op, "the members' shards are not equal");
  if (op == OpKind::copy && count != 1) throw malformed(op, "a copy has one member");
  if (op == OpKind::send && count != 2) throw malformed(op, "a transfer needs a source and a destination");
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [in, out] = collective.members[i];
    if (op == OpKind::send) {
      require_size(op, i == 0 ? in : out, elements);
      continue;
    }
    require_size(op, in, op == OpKind::all_gather ? elements / count : elements);
    require_size(op, out, op == OpKind::reduce_scatter ? elements / count : elements);
    if (op == OpKind::all_gather) require_own_place(op, in, out, i);
    if (op == OpKind::reduce_scatter) require_own_place(op, out, in, i);
    if (op == OpKind::all_to_all && !apart(in, out)) throw malformed(op, "an operand overlaps the other");
  }
}

/// Of two numbers one of which is NaN, NaN.
float larger(float a, float b) { return a > b || a != a ? a : b; }

}  // namespace

Collective collective_of(const Dag& dag, std::span<const TaskId> unit, const std::function<float*(BufferId)>& data) {
  const Task& first = dag.tasks[unit.front()];
  const Communicator& communicator = dag.communicator_of(first);
  const std::vector<std::uint32_t>& ranks = communicator.members;
  const auto wrong = [&](const std::string& what) {
    return std::logic_error("a " + std::string(operation(first.op).name) + " on '" + communicator.name + "' " + what);
  };
  if (unit.size() != ranks.size()) throw wrong("has not all its members");

  const bool transfer = first.op == OpKind::send || first.op == OpKind::receive;
  Collective collective{.op = transfer ? OpKind::send : first.op, .members = std::vector<CollectiveMember>(unit.size())};
  if (const auto* attributes = std::get_if<ReductionAttributes>(&dag.attributes[first.attributes])) {
    collective.reduction = attributes->reduction;
    collective.root = static_cast<std::size_t>(attributes->root);
  }
  std::vector<bool> present(unit.size(), false);
  for (const TaskId id : unit) {
    const Task& task = dag.tasks[id];
    const auto position = static_cast<std::size_t>(std::ranges::find(ranks, dag.ranks[task.rank].world_rank) - ranks.begin());
    if (position == ranks.size() || present[position]) throw wrong("has a task of a rank that is no member, or two of one");
    present[position] = true;
    const OpKind expected = transfer && position == 1 ? OpKind::receive : collective.op;
    if (task.op != expected) throw wrong("meets another operation");
    if (has_root(task.op) && task.attributes != first.attributes) throw wrong("meets one with another root or reduction");

    const auto operands = dag.operands_of(id);
    const auto memory = [&](const Operand& operand) {
      return std::span(data(operand.buffer), static_cast<std::size_t>(dag.buffers[operand.buffer].shape.elements()));
    };
    CollectiveMember& member = collective.members[position];
    for (const Operand& operand : operands) {
      if (operand.access() != Access::write) member.in = memory(operand);
      if (operand.access() != Access::read) member.out = memory(operand);
    }
  }
  return collective;
}

CollectiveExchange::CollectiveExchange(Collective collective)
    : collective_(std::move(collective)),
      elements_(whole_elements(collective_)),
      result_(std::make_unique_for_overwrite<float[]>(collective_.op == OpKind::all_to_all ? elements_ * members() : elements_)) {
  require_consistent(collective_, elements_);
}

/// The part of the whole vector that a member owns; where the members do not divide it, sizes differ by one.
std::span<float> CollectiveExchange::part(std::size_t member) const {
  const std::size_t begin = elements_ * member / members();
  const std::size_t end = elements_ * (member + 1) / members();
  return {result_.get() + begin, end - begin};
}

/// What a member of an all-to-all sends to all.
std::span<float> CollectiveExchange::sent(std::size_t source) const { return {result_.get() + source * elements_, elements_}; }

void CollectiveExchange::reduce_part(std::size_t member) noexcept {
  const std::span<float> sum = part(member);
  const std::size_t begin = static_cast<std::size_t>(sum.data() - result_.get());
  std::ranges::copy(collective_.members[0].in.subspan(begin, sum.size()), sum.begin());
  for (std::size_t i = 1; i < members(); ++i) {
    const float* addend = collective_.members[i].in.data() + begin;
    if (collective_.reduction == Reduction::max) {
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] = larger(sum[e], addend[e]);
    } else {
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += addend[e];
    }
  }
  if (collective_.reduction == Reduction::mean) {
    for (float& element : sum) element /= static_cast<float>(members());
  }
}

void CollectiveExchange::contribute(std::size_t member) noexcept {
  const std::span<const float> in = collective_.members[member].in;
  switch (collective_.op) {
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::reduce:
      return reduce_part(member);
    case OpKind::all_gather:
    case OpKind::gather:
      std::ranges::copy(in, part(member).begin());
      return;
    case OpKind::all_to_all:
      std::ranges::copy(in, sent(member).begin());
      return;
    default:  // who alone has something to give; the others' operand is empty
      std::ranges::copy(in, result_.get());
  }
}

void CollectiveExchange::collect(std::size_t member) noexcept {
  const std::span<float> out = collective_.members[member].out;
  if (collective_.op == OpKind::all_to_all) {
    const std::size_t piece = elements_ / members();
    for (std::size_t source = 0; source < members(); ++source) {
      std::ranges::copy(sent(source).subspan(member * piece, piece), out.begin() + static_cast<std::ptrdiff_t>(source * piece));
    }
    return;
  }
  const bool partial = collective_.op == OpKind::reduce_scatter || collective_.op == OpKind::scatter;
  const float* from = partial ? part(member).data() : result_.get();
  std::copy_n(from, out.size(), out.begin());
}

}  // namespace tandem
