#include "topology/cluster.h"

#include <algorithm>
#include <set>

#include "runtime/base/divide_up.h"
#include "runtime/base/si.h"
#include "topology/mix.h"

namespace tandem::topology {

Cluster::Cluster(const ClusterSpec& spec) : spec_(spec), fabric_(spec), nodes_(divide_up(spec.gpus, spec.gpus_per_node)) {
  nvlink_ = spec.nvlink_GBps * giga * spec.nvlink_efficiency;
  const double to_leaf = spec.fabric.oversubscription.empty() ? 1 : spec.fabric.oversubscription.front();
  nic_ = spec.nic_gbps * giga / bits_per_byte * spec.nic_efficiency / to_leaf;
  attach_nics();
  attach_hosts();
  number_devices();
  plain_nics_ = spec.link_faults.empty() && spec_.pcie.ports.empty() &&
                std::ranges::all_of(nics_of_gpu_, [](const auto& nics) { return nics.size() <= 1; });
  if (nodes_ == 1 || spec.link_faults.empty()) return;
  for (std::int64_t node = 0; node < nodes_; ++node) exits(static_cast<std::uint32_t>(node * spec.gpus_per_node));
}

void Cluster::attach_nics() {
  nics_of_gpu_.resize(static_cast<std::size_t>(spec_.gpus_per_node));
  const std::int64_t nics = spec_.nics_per_node, each = nics / spec_.gpus_per_node;
  for (std::int64_t place = 0; place < spec_.gpus_per_node && nics > 0; ++place) {
    auto& of_gpu = nics_of_gpu_[static_cast<std::size_t>(place)];
    if (!spec_.pcie.nic_of_gpu.empty()) {
      of_gpu = {spec_.pcie.nic_of_gpu[static_cast<std::size_t>(place)]};
    } else if (each <= 1) {
      of_gpu = {place * nics / spec_.gpus_per_node};
    } else {
      for (std::int64_t i = 0; i < each; ++i) of_gpu.push_back(place * each + i);
    }
  }
}

void Cluster::attach_hosts() {
  for (std::int64_t place = 0; place < spec_.gpus_per_node && spec_.host.link_GBps > 0; ++place) {
    const std::string name = "pcie of gpu " + std::to_string(place);
    spec_.pcie.ports.push_back({.name = name, .GBps = spec_.host.link_GBps, .gpus = {place}});
  }
}

/// A PCIe port that is as fast as all NICs behind it becomes no link, because it never holds anything up.
void Cluster::number_devices() {
  std::erase_if(spec_.pcie.ports, [&](const PcieSpec::Port& port) {
    if (spec_.host.link_GBps > 0) return false;  // copies to the host cross it, too
    std::set<std::int64_t> behind;
    for (const std::int64_t gpu : port.gpus) {
      const auto& nics = nics_of_gpu_[static_cast<std::size_t>(gpu)];
      behind.insert(nics.begin(), nics.end());
    }
    return port.GBps * giga >= nic_ * static_cast<double>(behind.size());
  });
  first_pcie_ = static_cast<std::uint32_t>(is_mesh() ? nodes_ * pairs_of_node() : spec_.gpus);
  first_nic_ = first_pcie_ + static_cast<std::uint32_t>(nodes_) * static_cast<std::uint32_t>(spec_.pcie.ports.size());
  first_bundle_ = first_nic_ + static_cast<std::uint32_t>(nodes_ * spec_.nics_per_node);
  device_count_ = first_bundle_;
  for (const Fabric::Bundle& bundle : fabric_.bundles()) {
    cable_device_.push_back(device_count_);
    device_count_ += spec_.fabric.routing == FlowRouting::ecmp ? bundle.cables : 1;
  }
}

double Cluster::share_left(LinkFault::Where where, std::int64_t index) const {
  double left = 1;
  for (const LinkFault& fault : spec_.link_faults) {
    if (fault.where == where && fault.index == index) left = std::min(left, fault.factor);
  }
  return left;
}

double Cluster::nic_share_left(std::int64_t nic) const {
  return std::min(share_left(LinkFault::Where::nic, nic), share_left(LinkFault::Where::rail, nic % spec_.nics_per_node));
}

/// The pairs (0, 1), (0, 2), (1, 2), (0, 3) .. of a node's GPUs.
LinkId Cluster::link_of_pair(std::uint32_t from, std::uint32_t to) const {
  const std::int64_t low = place_in_node(std::min(from, to)), high = place_in_node(std::max(from, to));
  const std::int64_t device = node_of(from) * pairs_of_node() + high * (high - 1) / 2 + low;
  return from < to ? out_of(device) : into(device);
}

std::array<std::uint32_t, 2> Cluster::pair_of(std::uint32_t device) const {
  const std::int64_t pair = device % pairs_of_node(), first_gpu = device / pairs_of_node() * spec_.gpus_per_node;
  std::int64_t high = 1;
  while (high * (high + 1) / 2 <= pair) ++high;
  return {static_cast<std::uint32_t>(first_gpu + pair - high * (high - 1) / 2), static_cast<std::uint32_t>(first_gpu + high)};
}

/// Returns the capacity per direction of a GPU's port or the link of two, a PCIe port or a NIC.
BytesPerSecond Cluster::capacity_below_switches(std::uint32_t device) const {
  if (device < first_pcie_ && is_mesh()) {
    const auto [one, other] = pair_of(device);
    const double left = std::min(share_left(LinkFault::Where::gpu, one), share_left(LinkFault::Where::gpu, other));
    return nvlink_ / static_cast<double>(spec_.gpus_per_node - 1) * left;
  }
  if (device < first_pcie_) return nvlink_ * share_left(LinkFault::Where::gpu, device);
  if (device < first_nic_) return spec_.pcie.ports[(device - first_pcie_) % spec_.pcie.ports.size()].GBps * giga;
  return nic_ * nic_share_left(device - first_nic_);
}

std::uint32_t Cluster::bundle_of(std::uint32_t device) const {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(cable_device_, device) - cable_device_.begin() - 1);
}

Link Cluster::unnamed_link(LinkId id) const {
  const std::uint32_t device = id / 2;
  const auto of = [](Tier tier, BytesPerSecond capacity) { return Link{.tier = tier, .capacity = capacity}; };
  if (device < first_pcie_) return of(Tier::nvlink, capacity_below_switches(device));
  if (device < first_nic_) return of(Tier::pcie, capacity_below_switches(device));
  if (device < first_bundle_) return of(Tier::nic, capacity_below_switches(device));
  const std::uint32_t bundle = bundle_of(device);
  const Fabric::Bundle& spec = fabric_.bundles()[bundle];
  if (spec_.fabric.routing == FlowRouting::adaptive) return of(spec.tier, fabric_.capacity(bundle));
  return of(spec.tier, spec.capacity * fabric_.share_left(bundle, device - cable_device_[bundle]));
}

Link Cluster::link(LinkId id) const {
  Link link = unnamed_link(id);
  const std::uint32_t device = id / 2;
  if (link.tier == Tier::nvlink && is_mesh()) {
    const auto [one, other] = pair_of(device);
    link.name = "gpu" + std::to_string(one) + "-gpu" + std::to_string(other);
  } else if (link.tier == Tier::nvlink) {
    link.name = "gpu" + std::to_string(device);
  }
  if (link.tier == Tier::nic) link.name = "nic" + std::to_string(device - first_nic_);
  if (link.tier == Tier::pcie) {
    const auto [node, port] = std::ldiv(device - first_pcie_, static_cast<long>(spec_.pcie.ports.size()));
    link.name = "node" + std::to_string(node) + " " + spec_.pcie.ports[static_cast<std::size_t>(port)].name;
  }
  if (device >= first_bundle_) {
    const std::uint32_t bundle = bundle_of(device);
    link.name = fabric_.bundles()[bundle].name;
    if (spec_.fabric.routing == FlowRouting::ecmp) link.name += " cable " + std::to_string(device - cable_device_[bundle]);
  }
  link.name += id % 2 == 0 ? " out" : " in";
  return link;
}

std::vector<Link> Cluster::links() const {
  std::vector<Link> links;
  for (LinkId id = 0; id < link_count(); ++id) links.push_back(link(id));
  return links;
}

void Cluster::find_rates(Paths& paths) const {
  struct OnTier {
    double crossings = 0;
    BytesPerSecond least = 0;
  };
  std::array<OnTier, tier_count> tiers;
  const bool is_direct = paths.algorithm == Algorithm::direct;
  const auto limit = [](BytesPerSecond& rate, BytesPerSecond share) {
    if (share > 0) rate = rate == 0 ? share : std::min(rate, share);
  };
  for (const Crossing& crossing : paths.crossings) {
    if (crossing.multiplicity == 0) continue;
    const Link link = unnamed_link(crossing.link);
    OnTier& tier = tiers[static_cast<std::size_t>(link.tier)];
    tier.crossings += crossing.multiplicity;
    limit(tier.least, link.capacity / crossing.multiplicity);
    if (link.tier <= Tier::nic && !is_direct) limit(paths.bandwidth, link.capacity / crossing.multiplicity);
  }
  const bool by_tier = sends_tokens_once(paths.algorithm) || paths.algorithm == Algorithm::nvls_tree;
  const bool is_ring = paths.algorithm == Algorithm::ring;
  if (is_ring || is_direct)
    for (const OnTier& tier : tiers) limit(paths.slowest, tier.least);
  if (!by_tier && !is_ring) return;
  paths.in_node = tiers[static_cast<std::size_t>(Tier::nvlink)].least;
  if (by_tier) {
    limit(paths.between_nodes, tiers[static_cast<std::size_t>(Tier::pcie)].least);
    limit(paths.between_nodes, tiers[static_cast<std::size_t>(Tier::nic)].least);
    return;
  }
  // Each hop between nodes crosses two NICs and two links of each tier that it goes up to. So the crossings, from the top tier
  // down, tell how many hops each tier limits.
  const double hops = tiers[static_cast<std::size_t>(Tier::nic)].crossings;
  double known = 0, mean = 0;
  for (std::size_t top = tier_count; hops > 0 && top-- > static_cast<std::size_t>(Tier::pcie);) {
    BytesPerSecond rate = 0;
    for (std::size_t t = static_cast<std::size_t>(Tier::pcie); t <= top; ++t) limit(rate, tiers[t].least);
    const double share = top <= static_cast<std::size_t>(Tier::nic) ? 1 : std::min(1.0, tiers[top].crossings / hops);
    if (rate > 0) mean += std::max(0.0, share - known) / rate;
    known = std::max(known, share);
  }
  paths.between_nodes = mean > 0 ? 1 / mean : 0;
}

Attachment Cluster::attachment(std::uint32_t gpu) const {
  Attachment attachment{.node = static_cast<std::uint32_t>(node_of(gpu)),
                        .devices = {is_mesh() ? no_device : gpu, no_device, no_device, no_device, no_device}};
  const auto& ports = spec_.pcie.ports;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (std::ranges::find(ports[port].gpus, place_in_node(gpu)) != ports[port].gpus.end())
      attachment.devices[1] = first_pcie_ + static_cast<std::uint32_t>(attachment.node * ports.size() + port);
  }
  if (spec_.nics_per_node == 0) return attachment;
  const std::int64_t nic = own_nic(gpu);
  attachment.devices[2] = first_nic_ + static_cast<std::uint32_t>(nic);
  std::size_t level = 3;
  for (const Fabric::Bundle* up = fabric_.bundle_up(fabric_.leaf_of(nic)); up != nullptr; up = fabric_.bundle_up(up->upper)) {
    if (level < attachment.devices.size()) attachment.devices[level++] = cable_device_[up->id];
  }
  return attachment;
}

bool Cluster::is_regular() const {
  const auto several_ports = [&](std::int64_t gpu) {
    return std::ranges::count_if(spec_.pcie.ports, [&](const auto& port) { return std::ranges::count(port.gpus, gpu) > 0; }) > 1;
  };
  for (std::int64_t gpu = 0; gpu < spec_.gpus_per_node; ++gpu) {
    if (several_ports(gpu) || nics_of_gpu_[static_cast<std::size_t>(gpu)].size() > 1) return false;
  }
  return !is_mesh() && spec_.link_faults.empty() && spec_.fabric.routing == FlowRouting::adaptive &&
         spec_.fabric.kind != FabricSpec::Kind::custom && fabric_.is_tree();
}

Seconds Cluster::intra_latency() const { return spec_.nvlink_latency_us * micro; }

void Cluster::cross_node(std::uint32_t from, std::uint32_t to, const Amount& amount, CrossingSum& sum) const {
  if (is_mesh()) {
    sum.add(link_of_pair(from, to), amount);
    return;
  }
  sum.add(out_of(from), amount);
  sum.add(into(to), amount);
}

void Cluster::cross_node(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) const {
  cross_node(from, to, Amount{times}, sum);
}

void Cluster::cross_evenly(std::uint32_t from, std::span<const std::uint32_t> peers, std::uint32_t times,
                           CrossingSum& sum) const {
  if (!is_mesh()) {
    cross_node(from, from, Amount{times}, sum);
    return;
  }
  const auto others = static_cast<std::uint32_t>(peers.size() - static_cast<std::size_t>(std::ranges::count(peers, from)));
  for (const std::uint32_t to : peers)
    if (to != from) cross_node(from, to, Amount{times, others}, sum);
}

std::vector<Cluster::Exit> Cluster::exits(std::uint32_t gpu) const {
  const std::int64_t node = node_of(gpu), first_gpu = node * spec_.gpus_per_node;
  std::vector<Exit> alive;
  for (std::int64_t i = 0; i < spec_.gpus_per_node && alive.empty(); ++i) {
    const std::int64_t place = (place_in_node(gpu) + i) % spec_.gpus_per_node;
    for (const std::int64_t local : nics_of_gpu_[static_cast<std::size_t>(place)]) {
      const std::int64_t nic = node * spec_.nics_per_node + local;
      if (spec_.link_faults.empty() || nic_share_left(nic) > 0)
        alive.push_back({nic, static_cast<std::uint32_t>(first_gpu + place)});
    }
  }
  if (alive.empty()) throw TopologyError("node " + std::to_string(node) + " is unreachable: all of its NICs are dead");
  return alive;
}

void Cluster::cross_pcie(std::uint32_t gpu, bool out, const Amount& amount, CrossingSum& sum) const {
  const auto& ports = spec_.pcie.ports;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (std::ranges::find(ports[port].gpus, place_in_node(gpu)) == ports[port].gpus.end()) continue;
    const std::int64_t device =
        first_pcie_ + node_of(gpu) * static_cast<std::int64_t>(ports.size()) + static_cast<std::int64_t>(port);
    sum.add(out ? out_of(device) : into(device), amount);
  }
}

Seconds Cluster::cross_fabric(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) const {
  if (plain_nics_) {
    const std::int64_t sender = own_nic(from), receiver = own_nic(to);
    sum.add(out_of(nic_device(sender)), {times});
    sum.add(into(nic_device(receiver)), {times});
    return hop_latency(cross_switches(sender, receiver, {times}, sum));
  }
  const std::vector<Exit> senders = exits(from), receivers = exits(to);
  const std::size_t ways = std::max(senders.size(), receivers.size());
  const Amount amount{times, static_cast<std::uint32_t>(ways)};
  int switches = 0;
  for (std::size_t way = 0; way < ways; ++way) {
    const Exit& sender = senders[way % senders.size()];
    const Exit& receiver = receivers[way % receivers.size()];
    if (sender.gpu != from) cross_node(from, sender.gpu, amount, sum);
    cross_pcie(sender.gpu, true, amount, sum);
    sum.add(out_of(nic_device(sender.nic)), amount);
    switches = std::max(switches, cross_switches(sender.nic, receiver.nic, amount, sum));
    sum.add(into(nic_device(receiver.nic)), amount);
    cross_pcie(receiver.gpu, false, amount, sum);
    if (receiver.gpu != to) cross_node(receiver.gpu, to, amount, sum);
  }
  return hop_latency(switches);
}

void Cluster::cross_to_host(std::uint32_t gpu, bool out, CrossingSum& sum) const { cross_pcie(gpu, out, {}, sum); }

Seconds Cluster::host_latency() const { return spec_.host.link_latency_us * micro; }

Seconds Cluster::hop_latency(int switches) const { return (spec_.nic_latency_us + switches * spec_.switch_latency_us) * micro; }

std::int64_t Cluster::own_nic(std::uint32_t gpu) const {
  const std::int64_t node = node_of(gpu);
  return node * spec_.nics_per_node + nics_of_gpu_[static_cast<std::size_t>(gpu - node * spec_.gpus_per_node)].front();
}

/// Returns the number of switches on the longest way taken.
int Cluster::cross_switches(std::int64_t from_nic, std::int64_t to_nic, const Amount& amount, CrossingSum& sum) const {
  const std::uint32_t from_leaf = fabric_.leaf_of(from_nic), to_leaf = fabric_.leaf_of(to_nic);
  const auto link = [&](const Fabric::Step& step, std::uint32_t cable) {
    const std::uint32_t device = cable_device_[step.bundle] + cable;
    return step.up ? out_of(device) : into(device);
  };
  std::size_t steps = 0;
  if (fabric_.is_tree() && spec_.fabric.routing == FlowRouting::adaptive) {
    fabric_.walk_tree(from_leaf, to_leaf, [&](const Fabric::Step& step) {
      sum.add(link(step, 0), amount);
      ++steps;
    });
    return static_cast<int>(steps) + 1;
  }
  const std::vector<Fabric::Route> routes = fabric_.routes(from_leaf, to_leaf);
  if (spec_.fabric.routing == FlowRouting::adaptive) {
    for (const Fabric::Route& route : routes) {
      for (const Fabric::Step& step : route) sum.add(link(step, 0), amount.split(static_cast<std::uint32_t>(routes.size())));
      steps = std::max(steps, route.size());
    }
  } else {
    const auto flows = static_cast<std::uint32_t>(spec_.fabric.flows);
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
      const std::uint64_t connection = static_cast<std::uint64_t>(from_nic) << 32 | static_cast<std::uint64_t>(to_nic);
      const std::uint64_t hash = mix(mix(mix(spec_.fabric.ecmp_seed) + flow) ^ mix(connection));
      const Fabric::Route& route = routes[hash % routes.size()];
      const std::vector<std::uint32_t> cables = fabric_.cables_on(route, mix(hash));
      for (std::size_t i = 0; i < route.size(); ++i) sum.add(link(route[i], cables[i]), amount.split(flows));
      steps = std::max(steps, route.size());
    }
  }
  return static_cast<int>(steps) + 1;
}

std::uint32_t Cluster::on_rail_of(std::uint32_t gpu, std::uint32_t other) const {
  if (spec_.nics_per_node == 0) return gpu;
  const auto rail = [&](std::int64_t place) { return nics_of_gpu_[static_cast<std::size_t>(place)].front(); };
  const std::int64_t wanted = rail(place_in_node(other));
  if (rail(place_in_node(gpu)) == wanted) return gpu;
  const std::int64_t there = node_of(gpu) * spec_.gpus_per_node + place_in_node(other);
  return there < spec_.gpus ? static_cast<std::uint32_t>(there) : gpu;
}

}  // namespace tandem::topology
