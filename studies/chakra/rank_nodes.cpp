#include "studies/chakra/rank_nodes.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/base/input_error.h"

namespace tandem::studies {
namespace {

[[noreturn]] void refuse_node(const ChakraTrace& trace, const chakra::Node& node, const std::string& sentence) {
  throw InputError({trace.file, 0, 0}, name_of_node(node) + " " + sentence);
}

/// By node: the nodes it waits for.
struct NodeDependencies {
  std::vector<std::vector<std::uint32_t>> data, control;
  std::size_t dropped = 0;
};

NodeDependencies dependencies_of(const ChakraTrace& trace) {
  std::unordered_map<std::uint64_t, std::uint32_t> index_of;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) index_of.emplace(trace.nodes[i].id(), i);
  NodeDependencies all{std::vector<std::vector<std::uint32_t>>(trace.nodes.size()),
                       std::vector<std::vector<std::uint32_t>>(trace.nodes.size())};
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const chakra::Node& node = trace.nodes[i];
    for (const std::uint64_t id : node.data_deps()) {
      const auto before = index_of.find(id);
      if (before == index_of.end())
        refuse_node(trace, node, "waits for node " + std::to_string(id) + ", which is not in the trace; expected all of it");
      if (before->second == i) refuse_node(trace, node, "waits for itself; expected dependencies without a circle");
      all.data[i].push_back(before->second);
    }
    for (const std::uint64_t id : node.ctrl_deps()) {
      const auto before = index_of.find(id);
      const bool counts = before != index_of.end() && before->second != i;
      counts ? all.control[i].push_back(before->second) : static_cast<void>(++all.dropped);
    }
  }
  return all;
}

/// Whether every node that takes time tells when it began.
bool tells_starts(const ChakraTrace& trace) {
  return std::ranges::all_of(trace.nodes, [](const chakra::Node& node) {
    return node.start_time_micros() > 0 || (node.duration_micros() == 0 && node.attr_size() == 0);
  });
}

/// Returns the order; shorter where dependencies lead in a circle.
NodeOrder sorted(const ChakraTrace& trace, const std::vector<std::vector<std::uint32_t>>& before) {
  using Next = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;
  const bool by_start = tells_starts(trace);
  std::vector<std::size_t> waits_for(before.size());
  std::vector<std::vector<std::uint32_t>> followers(before.size());
  std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
  const auto release = [&](std::uint32_t i) {
    ready.emplace(by_start ? trace.nodes[i].start_time_micros() : 0, trace.nodes[i].id(), i);
  };
  for (std::uint32_t i = 0; i < before.size(); ++i) {
    waits_for[i] = before[i].size();
    for (const std::uint32_t one : before[i]) followers[one].push_back(i);
    if (before[i].empty()) release(i);
  }
  NodeOrder order;
  std::vector<std::uint32_t> place(before.size());
  while (!ready.empty()) {
    const std::uint32_t next = std::get<2>(ready.top());
    ready.pop();
    place[next] = static_cast<std::uint32_t>(order.nodes.size());
    order.nodes.push_back(next);
    std::vector<std::uint32_t>& after = order.after.emplace_back();
    for (const std::uint32_t one : before[next]) after.push_back(place[one]);
    std::ranges::sort(after);
    after.erase(std::ranges::unique(after).begin(), after.end());
    for (const std::uint32_t follower : followers[next])
      if (--waits_for[follower] == 0) release(follower);
  }
  return order;
}

}  // namespace

std::string name_of_node(const chakra::Node& node) { return "node " + std::to_string(node.id()) + " (" + node.name() + ")"; }

NodeOrder order_of(const ChakraTrace& trace) {
  NodeDependencies dependencies = dependencies_of(trace);
  std::vector<std::vector<std::uint32_t>> both = dependencies.data;
  std::size_t controls = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    controls += dependencies.control[i].size();
    both[i].insert(both[i].end(), dependencies.control[i].begin(), dependencies.control[i].end());
  }
  NodeOrder order = sorted(trace, both);
  order.dropped = dependencies.dropped;
  if (order.nodes.size() == trace.nodes.size()) return order;
  order = sorted(trace, dependencies.data);
  order.dropped = dependencies.dropped + controls;
  order.circular = true;
  if (order.nodes.size() == trace.nodes.size()) return order;
  std::vector<bool> is_ordered(trace.nodes.size(), false);
  for (const std::uint32_t node : order.nodes) is_ordered[node] = true;
  const auto stuck = std::ranges::find(is_ordered, false) - is_ordered.begin();
  refuse_node(trace, trace.nodes[static_cast<std::size_t>(stuck)],
              "waits for others that wait for it; expected dependencies without a circle");
}

std::optional<ExchangeNode> exchange_of(const ChakraTrace& trace, const chakra::Node& node) {
  const auto type = static_cast<ChakraNodeType>(node.type());
  const bool sends = type == ChakraNodeType::send, receives = type == ChakraNodeType::receive;
  if (type != ChakraNodeType::collective && !sends && !receives) return std::nullopt;
  const auto size = integer_of(node, "comm_size");
  if (!size && integer_of(node, "is_cpu_op").value_or(0) != 0) return std::nullopt;
  const auto number = integer_of(node, "comm_type");
  if (!sends && !receives && !number)
    refuse_node(trace, node, "is a collective without `comm_type`; expected a number of 0 to 9");
  ExchangeNode exchange{.op = sends ? OpKind::send : OpKind::receive, .bytes = size.value_or(0)};
  if (!sends && !receives) {
    const auto op = collective_of_chakra(*number);
    if (!op) refuse_node(trace, node, "has `comm_type` " + std::to_string(*number) + "; expected a number of 0 to 9");
    exchange.op = *op;
  }
  if (exchange.op != OpKind::barrier && (!size || *size < 0))
    refuse_node(trace, node, "exchanges something without `comm_size`; expected a number of bytes");
  exchange.group = text_of(node, "pg_name").value_or("");
  if (const auto from = integer_of(node, "comm_src")) exchange.from = static_cast<std::uint32_t>(*from);
  if (const auto to = integer_of(node, "comm_dst")) exchange.to = static_cast<std::uint32_t>(*to);
  exchange.tag = integer_of(node, "comm_tag").value_or(0);
  if (const chakra::Attribute* const dims = attribute_of(node, "involved_dim"); dims != nullptr && exchange.group.empty()) {
    const auto& involved = dims->bool_list().values();
    if (std::find(involved.begin(), involved.end(), false) != involved.end())
      refuse_node(trace, node,
                  "is of some dimensions of ASTRA-sim's topology alone (`involved_dim`), of which no trace tells the ranks; "
                  "expected `pg_name`, and a file of process groups beside the traces");
  }
  return exchange;
}

}  // namespace tandem::studies
