#include "sim/collective_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/base/hash.h"
#include "sim/measured_collectives.h"
#include "sim/nccl_channels.h"
#include "sim/nccl_choice.h"
#include "sim/ring_latency.h"
#include "sim/scaled_up.h"

namespace tandem::sim {
namespace {

// For an architecture of which NCCL has no constants, its latency model under the Simple protocol holds throughout (NVIDIA/nccl,
// src/graph/tuning.cc, ncclTopoTuneModel()). The latency of a hop (hwLatencies) is the layout's.
constexpr Seconds base_latency = 8.4e-6;  // baseLatencies[NCCL_ALGO_RING and NCCL_ALGO_TREE][NCCL_PROTO_SIMPLE]

/// Returns the cost of `passes` rounds of the ring: two for an all-reduce, one for an all-gather or a reduce-scatter.
CollectiveCost ring(std::uint32_t passes, Bytes bytes, std::uint32_t members, const Layout& layout) {
  const Bytes hops = Bytes{passes} * (members - 1);
  CollectiveCost cost{.bytes_per_channel = scaled_up(bytes, hops, Bytes{members} * layout.paths.front().channels),
                      .start = base_latency,
                      .intra_latency = layout.intra_latency,
                      .inter_latency = layout.inter_latency};
  cost.latency = ring_latency(passes, members, layout, cost);
  return cost;
}

/// Returns the latency of all hops up and down: a chain inside each node, a binary tree over the nodes.
Seconds latency_of_tree_hops(std::uint32_t members, const Layout& layout) {
  const auto levels = static_cast<double>(std::bit_width(layout.nodes) - 1);
  const std::uint32_t chain = members / layout.nodes - 1;
  return 2 * (chain * layout.intra_latency + levels * layout.inter_latency);
}

/// Returns the cost of a ring whose hops are so much quicker that together they take no longer than a tree's.
CollectiveCost all_reduce(Bytes bytes, std::uint32_t members, const Layout& layout) {
  CollectiveCost cost = ring(2, bytes, members, layout);
  const std::uint32_t between = hops_between_nodes(2, members, layout.nodes);
  const Seconds of_ring = (2 * (members - 1) - between) * cost.intra_latency + between * cost.inter_latency;
  const Seconds of_tree = latency_of_tree_hops(members, layout);
  if (of_tree >= of_ring) return cost;
  cost.intra_latency *= of_tree / of_ring;
  cost.inter_latency *= of_tree / of_ring;
  cost.latency = ring_latency(2, members, layout, cost);
  return cost;
}

/// Returns the cost of messages that wait for no other.
CollectiveCost at_once(Bytes bytes_per_channel, const Layout& layout, Seconds latency) {
  const Seconds hop = layout.nodes == 1 ? layout.intra_latency : layout.inter_latency;
  return {.latency = latency,
          .bytes_per_channel = bytes_per_channel,
          .start = std::max(0.0, latency - hop),
          .intra_latency = std::min(latency, layout.intra_latency),
          .inter_latency = std::min(latency, layout.inter_latency)};
}

/// Returns the cost of the kernels of DeepEP or HybridEP, which reach a share of what the NVLinks let through, and another share
/// of the NICs.
CollectiveCost token_dispatch(Bytes bytes, std::uint32_t members, const Layout& layout, Seconds latency) {
  const Paths& paths = layout.paths.front();
  const NcclConstants::TokenKernels& share = nccl_constants().token_kernels(paths.algorithm);
  const bool one_node = layout.nodes == 1;
  CollectiveCost cost = at_once(scaled_up(bytes, members - 1, Bytes{members} * paths.channels), layout, latency);
  BytesPerSecond rate = std::numeric_limits<double>::infinity();
  if (paths.in_node > 0) rate = (one_node ? share.in_node : share.forwarding) * paths.in_node;
  if (paths.between_nodes > 0) rate = std::min(rate, share.over_nodes * paths.between_nodes);
  if (rate < std::numeric_limits<double>::infinity()) {
    cost.rate_limit = rate;
    cost.limit_is_share = true;
  }
  return cost;
}

/// Returns by which factor the narrowest link of the path becomes wider, among those that NCCL knows (see `Paths::bandwidth`).
double widening(const Speedup& speedup, const Paths& paths, const std::vector<Link>& links) {
  BytesPerSecond before = std::numeric_limits<double>::infinity(), after = before;
  for (const Crossing& crossing : paths.crossings) {
    const Link& link = links[crossing.link];
    if (crossing.multiplicity == 0 || link.tier > Tier::nic) continue;
    const BytesPerSecond share = link.capacity / crossing.multiplicity;
    before = std::min(before, share);
    after = std::min(after, share * speedup.of_links(link.tier));
  }
  return after > before ? after / before : 1;
}

}  // namespace

CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture) {
  const auto n = static_cast<std::uint32_t>(members);
  if (n < 1 || layout.nodes < 1 || layout.paths.empty() || layout.paths.front().channels < 1)
    throw std::logic_error("a communicator without members, channels or nodes");
  if (kind == OpKind::copy) return at_once(bytes, layout, layout.intra_latency);
  if (n == 1) return {};
  const bool tuned = architecture != Architecture::unknown;
  const Bytes channels = layout.paths.front().channels;
  const Seconds hop = layout.nodes == 1 ? layout.intra_latency : layout.inter_latency;
  switch (kind) {
    case OpKind::all_reduce:
      return tuned ? nccl_choice(kind, bytes, members, layout, architecture) : all_reduce(bytes, n, layout);
    case OpKind::all_gather:
      if (layout.paths.front().algorithm == Algorithm::direct)  // a kernel that writes to all others
        return at_once(scaled_up(bytes, n - 1, n * channels), layout, hop);
      [[fallthrough]];
    case OpKind::reduce_scatter:
      return tuned ? nccl_choice(kind, bytes, members, layout, architecture) : ring(1, bytes, n, layout);
    case OpKind::barrier:
      return collective_cost(OpKind::all_reduce, 0, members, layout, architecture);
    case OpKind::broadcast:
    case OpKind::reduce:
      // A chain from member to member, pipelined: all of the vector over every hop. The ring's hop back to the root counts too.
      return at_once(scaled_up(bytes, 1, channels), layout, ring(1, 0, n, layout).latency);
    case OpKind::gather:
    case OpKind::scatter:
      // Messages between the root and every other, all at once: the root's port carries all but its own part. The ports of the
      // others are charged as much, which is too much where other traffic needs them.
    case OpKind::all_to_all:
      if (kind == OpKind::all_to_all && bytes == 0) return {};  // the next one's kernel carries it
      if (sends_tokens_once(layout.paths.front().algorithm)) return token_dispatch(bytes, n, layout, hop);
      // Pairwise messages, all under way at once: the latency of one, the bytes of all but a member's own.
      return at_once(scaled_up(bytes, n - 1, n * channels), layout, hop);
    case OpKind::send:
    case OpKind::receive:
      return at_once(scaled_up(bytes, 1, channels), layout, hop);
    default:
      throw std::logic_error("not a collective: " + std::string(operation(kind).name));
  }
}

namespace {

/// Returns the time at the rate of a channel that has its links to itself, which folding leaves as it is.
Seconds time_alone(const CollectiveCost& cost, const Paths& paths) {
  BytesPerSecond rate = paths.bandwidth;
  if (cost.rate_limit > 0) rate = rate > 0 ? std::min(rate, cost.rate_limit) : cost.rate_limit;
  return cost.latency + (rate > 0 ? static_cast<double>(cost.bytes_per_channel) / rate : 0);
}

/// Returns the same; direct messages take the rate of their slowest link.
Seconds idle_time(const CollectiveCost& cost, const Paths& paths) {
  if (paths.algorithm != Algorithm::direct || paths.slowest == 0) return time_alone(cost, paths);
  return cost.latency + static_cast<double>(cost.bytes_per_channel) / paths.slowest;
}

/// Whether a kernel of DeepEP or HybridEP carries it, and none of NCCL's.
bool is_of_deepep(OpKind kind, const Layout& layout) {
  const Algorithm algorithm = layout.paths.front().algorithm;
  return (kind == OpKind::all_to_all && sends_tokens_once(algorithm)) ||
         (kind == OpKind::all_gather && algorithm == Algorithm::direct);
}

/// Makes the collective take `times` as long, by that many times the latency and the bytes.
void stretch(CollectiveCost& cost, double times) {
  cost.stretch = times;
  for (Seconds* latency : {&cost.latency, &cost.start, &cost.intra_latency, &cost.inter_latency}) *latency *= times;
  cost.bytes_per_channel = std::llround(static_cast<double>(cost.bytes_per_channel) * times);
}

}  // namespace

CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const Device& device) {
  CollectiveCost cost = collective_cost(kind, bytes, members, layout, device.architecture);
  if (device.collectives.empty() || is_of_deepep(kind, layout)) return cost;
  const auto modelled = [&](Bytes of) {
    const CollectiveCost model = collective_cost(kind, of, members, layout, device.architecture);
    return idle_time(model, layout.paths[model.paths]);
  };
  const std::optional<Seconds> measured = measured_time(device.collectives, kind, bytes, members, layout.nodes, modelled);
  const Seconds alone = idle_time(cost, layout.paths[cost.paths]);
  if (measured && alone > 0) stretch(cost, *measured / alone);
  return cost;
}

std::size_t tensors_in_list(const Dag& dag, const Task& task) {
  const bool has_list = task.axis == Axis::dp && (task.op == OpKind::all_gather || task.op == OpKind::reduce_scatter);
  return has_list && dag.software.tensor_lists ? dag.communicator_of(task).members.size() : 0;
}

namespace {

/// Returns the time of what the framework copies before or after (`Software::sequence_copies`, `Software::tensor_lists`).
Seconds copying(const Dag& dag, const Task& task) {
  const bool cuts_sequence = task.axis == Axis::tp && (task.op == OpKind::all_gather || task.op == OpKind::reduce_scatter);
  const std::size_t tensors = tensors_in_list(dag, task);
  const double copies = tensors > 0 ? 1 : cuts_sequence ? dag.software.sequence_copies : 0;
  if (copies == 0) return 0;
  const double kernels = tensors > 0 ? static_cast<double>(tensors) : 1;
  const Device& device = dag.device_of(task);
  const double bytes = 2 * copies * static_cast<double>(dag.groups[task.group].bytes);
  return kernels * device.efficiency.launch + bytes / (device.efficiency.memory * device.memory_bandwidth);
}

/// Whether the copy engines carry a transfer, as they do those of overlapped tensor parallelism (`use_ce` of Transformer Engine's
/// userbuffers).
bool is_copied_by_engines(OpKind kind, Axis axis) {
  return axis == Axis::tp && (kind == OpKind::send || kind == OpKind::receive);
}

}  // namespace

bool CollectiveCosts::are_alike(const Task& task) const {
  const Device& device = dag_->device_of(task);
  return std::ranges::all_of(dag_->members_of(task.group), [&](TaskId id) {
    const Device& other = dag_->device_of(dag_->tasks[id]);
    return &other == &device || other.collectives == device.collectives;
  });
}

CollectiveCost at_pace(CollectiveCost cost, double times) {
  for (Seconds* latency : {&cost.latency, &cost.start, &cost.intra_latency, &cost.inter_latency}) *latency /= times;
  cost.bytes_per_channel = at_pace(cost.bytes_per_channel, times);
  return cost;
}

double CollectiveCosts::pace_of(const Task& task) const {
  return speedup_.of_collectives(dag_->communicator_of(task).axis) / dag_->device_of(task).site.communication;
}

const CollectiveCost& CollectiveCosts::of(const Task& task) {
  const Group& group = dag_->groups[task.group];
  const Alike alike{group.communicator, task.op, dag_->ranks[task.rank].device, group.bytes};
  auto& recent = recent_[group.communicator];
  for (const Recent& last : recent)
    if (last.cost != nullptr && last.alike == alike) return *last.cost;
  std::shift_right(recent.begin(), recent.end(), 1);
  recent.front() = {alike, &found(alike, task)};
  return *recent.front().cost;
}

const CollectiveCost& CollectiveCosts::found(const Alike& alike, const Task& task) {
  const auto [found, is_new] = known_.try_emplace(alike);
  if (is_new) found->second = computed(task);
  return found->second;
}

std::size_t CollectiveCosts::HashOfAlike::operator()(const Alike& alike) const {
  const std::uint64_t whose = std::uint64_t{alike.communicator} << 32 | alike.device;
  return hash_of_place(whose, static_cast<std::int64_t>(alike.op), alike.bytes);
}

CollectiveCost CollectiveCosts::computed(const Task& task) const {
  const Group& group = dag_->groups[task.group];
  const Device& device = dag_->device_of(task);
  const Communicator& communicator = dag_->communicators[group.communicator];
  const std::size_t members = communicator.members.size();
  const bool was_measured = !device.collectives.empty() && !is_copied_by_engines(task.op, communicator.axis) && are_alike(task);
  CollectiveCost cost = was_measured ? collective_cost(task.op, group.bytes, members, communicator.layout, device)
                                     : collective_cost(task.op, group.bytes, members, communicator.layout, device.architecture);
  cost = at_pace(cost, pace_of(task));
  if (cost.limit_is_share) cost.rate_limit *= widening(speedup_, communicator.layout.paths[cost.paths], dag_->links);
  const Seconds time = time_alone(cost, communicator.layout.paths[cost.paths]);
  cost.latency += copying(*dag_, task);
  cost.occupation = nccl_occupation(task.op, group.bytes, members, communicator.layout, cost, time, device.architecture);
  if (is_copied_by_engines(task.op, communicator.axis)) cost.occupation.multiprocessors = 0;
  return cost;
}

Seconds uncontended_time(const CollectiveCost& cost, const Layout& layout, const std::vector<Link>& links) {
  Seconds transfer = 0;
  for (const Crossing& crossing : layout.paths[cost.paths].crossings) {
    const double carried = static_cast<double>(cost.bytes_per_channel) * crossing.multiplicity;
    transfer = std::max(transfer, carried / links[crossing.link].capacity);
  }
  if (cost.rate_limit > 0) transfer = std::max(transfer, static_cast<double>(cost.bytes_per_channel) / cost.rate_limit);
  return cost.latency + transfer;
}

}  // namespace tandem::sim
