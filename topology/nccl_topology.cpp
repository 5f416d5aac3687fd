#include "topology/nccl_topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/si.h"

namespace tandem::topology {
namespace {

constexpr double mega_per_giga = 1000;

using Part = Node::Part;
using Wire = Node::Wire;

[[noreturn]] void fail_at(const std::string& text, std::ptrdiff_t offset, const std::string& sentence) {
  const auto end = text.begin() + std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(text));
  const auto line = 1 + std::count(text.begin(), end, '\n');
  const auto before = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
  throw XmlError(sentence, static_cast<int>(line), static_cast<int>(end - before) + 1);
}

/// GB/s of one NVLink and direction. NVLink 1 has 20, NVLink 2 to 4 have 25 (NVIDIA's architecture whitepapers of P100 to H100),
/// NVLink 5 has 50 (18 of them make the 900 GB/s that NVIDIA gives for a B200, per direction).
double nvlink_rate(int sm) { return sm >= 100 ? 50 : sm >= 70 ? 25 : 20; }

/// 3D controllers, of NVIDIA's GPUs; processing accelerators and display controllers, of AMD's.
bool is_gpu_class(std::string_view pci_class) {
  return pci_class.starts_with("0x0302") || pci_class.starts_with("0x1200") || pci_class.starts_with("0x0380");
}

/// What NCCL expects between two CPUs (src/graph/topo.h: QPI, UPI, xGMI, X-bus), in GB/s.
double socket_rate(const pugi::xml_node& cpu) {
  const std::string arch = cpu.attribute("arch").value(), vendor = cpu.attribute("vendor").value();
  const int model = cpu.attribute("modelid").as_int();
  if (arch == "ppc64") return 32;
  if (vendor == "AuthenticAMD" || vendor == "AMD") return 16;
  if (vendor != "GenuineIntel") return 6;
  return model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6;
}

class Importer {
 public:
  explicit Importer(const std::string& text) : text_(text) {}

  Node read() && {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
    const std::string wanted = "expected the <system> that NCCL writes where NCCL_TOPO_DUMP_FILE says";
    if (!parsed) fail_at(text_, parsed.offset, std::string("is no XML (") + parsed.description() + "), " + wanted);
    const pugi::xml_node system = document.child("system");
    if (!system) fail_at(text_, 0, "has no element <system>, " + wanted);
    for (const pugi::xml_node cpu : system.children("cpu")) add_cpu(cpu);
    if (gpus_.empty()) take_bare_parts();
    join_directly();
    constexpr std::size_t most_parts = 1024;  // a DGX has about 50
    if (boost::num_vertices(node_.graph) > most_parts) fail(system, "has more than 1024 parts, expected one node");
    if (gpus_.empty()) fail(system, "has no <gpu>, " + wanted);
    for (const auto& [dev, gpu] : gpus_) node_.gpus.push_back(gpu);
    for (const auto& [dev, nic] : nics_) node_.nics.push_back(nic);
    return std::move(node_);
  }

 private:
  const std::string& text_;
  Node node_;
  std::map<int, std::uint32_t> gpus_, nics_;  ///< by dev
  std::map<std::string, std::uint32_t> nvswitches_;
  std::set<std::string> busids_;
  std::vector<std::pair<std::uint32_t, double>> cpus_;  ///< and GB/s to the others
  std::string host_;
  double nvlink_GBps_ = -1;  ///< of the GPUs so far
  /// Devices by busid that NCCL would fill in, of a file written by hand for NCCL_TOPO_FILE.
  std::map<std::string, std::uint32_t> bare_gpus_, bare_nics_;
  /// Links from one GPU to another, without a switch.
  struct DirectLink {
    pugi::xml_node element;
    std::string from, to;
    double count = 0, GBps = 0;  ///< of each; 0: not known
  };
  std::vector<DirectLink> direct_;
  std::map<std::string, std::uint32_t> gpu_at_;  ///< by busid
  int depth_ = 0;

  [[noreturn]] void fail(const pugi::xml_node& node, const std::string& sentence) const {
    fail_at(text_, node.offset_debug() - 1, "<" + std::string(node.name()) + "> " + sentence);
  }

  std::string text(const pugi::xml_node& node, const char* name) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) fail(node, std::string("has no attribute `") + name + "`, expected all that NCCL writes");
    return attribute.value();
  }

  int number(const pugi::xml_node& node, const char* name, int least) const {
    const std::string value = text(node, name);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < least)
      fail(node, std::string(name) + " is `" + value + "`, expected a whole number from " + std::to_string(least) + " up");
    return number;
  }

  std::uint32_t add_part(Part::Kind kind, std::string name) {
    return static_cast<std::uint32_t>(boost::add_vertex(Part{kind, std::move(name)}, node_.graph));
  }

  void number_by_dev(const pugi::xml_node& element, std::uint32_t part, std::map<int, std::uint32_t>& numbered) {
    const int dev = number(element, "dev", 0);
    if (!numbered.emplace(dev, part).second)
      fail(element, "has dev " + std::to_string(dev) + " like another, expected each once");
  }

  void add_cpu(const pugi::xml_node& cpu) {
    const std::string host = cpu.attribute("host_hash").value();
    if (!cpus_.empty() && host != host_) fail(cpu, "is another host's (host_hash differs), expected the CPUs of one node");
    host_ = host;
    const std::string name = "cpu" + text(cpu, "numaid");
    const std::uint32_t part = add_part(Part::Kind::cpu, name);
    const double rate = socket_rate(cpu);
    for (const auto& [other, other_rate] : cpus_) {
      const Wire wire{Wire::Kind::socket, node_.graph[other].name + "-" + name, std::min(rate, other_rate)};
      boost::add_edge(other, part, wire, node_.graph);
    }
    cpus_.emplace_back(part, rate);
    for (const pugi::xml_node pci : cpu.children("pci")) add_pci(pci, part);
  }

  void add_pci(const pugi::xml_node& pci, std::uint32_t parent) {
    const std::string busid = text(pci, "busid");
    if (!busids_.insert(busid).second) fail(pci, "has busid " + busid + " like another, expected each once");
    const pugi::xml_node gpu = pci.child("gpu"), nic = pci.child("nic");
    constexpr int most_nested = 32;  // no PCIe tree is near it
    if (++depth_ > most_nested) fail(pci, "is nested deeper than 32, expected a node's PCIe tree");
    const bool is_gpu = gpu || is_gpu_class(pci.attribute("class").value());
    const std::uint32_t part = add_part(is_gpu ? Part::Kind::gpu : Part::Kind::pcie, is_gpu ? "GPU " + busid : busid);
    if (is_gpu && !gpu) bare_gpus_.emplace(busid, part);
    if (!nic && std::string_view(pci.attribute("class").value()).starts_with("0x02")) bare_nics_.emplace(busid, part);
    const Wire link{Wire::Kind::pcie, "pcie " + busid, pcie_rate(pci)};
    if (const pugi::xml_node c2c = gpu.child("c2c")) {
      const double GBps = number(c2c, "count", 1) * number(c2c, "bw", 1) / mega_per_giga;
      boost::add_edge(cpus_.back().first, part, Wire{Wire::Kind::socket, "c2c " + busid, GBps}, node_.graph);
    } else {
      boost::add_edge(parent, part, link, node_.graph);
    }
    if (gpu) {
      gpu_at_.emplace(busid, part);
      add_gpu(gpu, part, busid);
    }
    for (const pugi::xml_node net : nic.children("net")) add_net(net, part);
    for (const pugi::xml_node below : pci.children("pci")) add_pci(below, part);
    --depth_;
  }

  double pcie_rate(const pugi::xml_node& pci) const {
    constexpr double default_speed = 8;
    constexpr int default_width = 16;
    const std::string speed = text(pci, "link_speed");
    double transfers = default_speed;
    if (!speed.empty() && !speed.starts_with("Unknown")) {
      const auto [end, error] = std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
      const std::string_view unit(end, speed.data() + speed.size());
      if (error != std::errc{} || !unit.starts_with(" GT/s") || !(transfers > 0) || transfers > 1000)
        fail(pci, "link_speed is `" + speed + "`, expected a speed such as `16.0 GT/s PCIe`");
    }
    const int width = number(pci, "link_width", 0);
    const double data = transfers > 5 ? 128.0 / 130 : 0.8;
    return transfers * (width > 0 ? width : default_width) / bits_per_byte * data;
  }

  void add_gpu(const pugi::xml_node& gpu, std::uint32_t part, const std::string& busid) {
    number_by_dev(gpu, part, gpus_);
    const double rate = nvlink_rate(number(gpu, "sm", 1));
    double sum = 0;
    for (const pugi::xml_node nvlink : gpu.children("nvlink")) {
      const std::string target = text(nvlink, "target"), tclass = text(nvlink, "tclass");
      if (is_gpu_class(tclass)) {
        direct_.push_back({nvlink, busid, target, static_cast<double>(number(nvlink, "count", 1)), rate});
        continue;
      }
      if (!tclass.starts_with("0x0680"))
        fail(nvlink, "leads to a device of class " + tclass + ", expected an NVSwitch (0x068000) or another GPU");
      const double width = number(nvlink, "count", 1) * rate;
      auto& nvswitch = nvswitches_.try_emplace(target, 0).first->second;
      if (nvswitch == 0) nvswitch = add_part(Part::Kind::nvswitch, "NVSwitch " + target);
      boost::add_edge(part, nvswitch, Wire{Wire::Kind::nvlink, "nvlink", width}, node_.graph);
      sum += width;
    }
    for (const pugi::xml_node xgmi : gpu.children("xgmi"))
      direct_.push_back({xgmi, busid, text(xgmi, "target"), static_cast<double>(number(xgmi, "count", 1)), 0});
    if (nvlink_GBps_ >= 0 && sum != nvlink_GBps_)
      fail(gpu, "has NVLinks of " + std::to_string(std::lround(sum)) + " GB/s, another GPU " +
                    std::to_string(std::lround(nvlink_GBps_)) + ", expected equal numbers of equal links");
    nvlink_GBps_ = sum;
  }

  /// Takes the devices of a file that is written by hand. GPUs are numbered by busid, as CUDA numbers equal ones; how fast
  /// NVLinks and NICs are, such a file does not say.
  void take_bare_parts() {
    int number = 0;
    for (const auto& [busid, part] : bare_gpus_) gpus_.emplace(number++, part);
    if (gpus_.empty() || !nics_.empty()) return;
    number = 0;
    for (const auto& [busid, card] : bare_nics_) {
      const std::uint32_t part = add_part(Part::Kind::nic, "NIC " + busid);
      nics_.emplace(number++, part);
      boost::add_edge(card, part, Wire{Wire::Kind::line, "line", std::numeric_limits<double>::infinity()}, node_.graph);
    }
  }

  /// Joins GPUs that have links without a switch: every two by equally many, or it is no node of ours.
  void join_directly() {
    std::map<std::pair<std::string, std::string>, double> links;
    for (const DirectLink& link : direct_) links[{link.from, link.to}] += link.count;
    for (const DirectLink& link : direct_) {
      const double count = links.at({link.from, link.to});
      const auto others =
          static_cast<std::size_t>(std::ranges::count_if(links, [&](const auto& one) { return one.first.first == link.from; }));
      if (!gpu_at_.contains(link.to) || others + 1 != gpu_at_.size() || count != links.begin()->second)
        fail(link.element, "joins GPU " + link.from + " to " + link.to + " without a switch, and " + link.from +
                               " has such links to " + std::to_string(others) + " of " + std::to_string(gpu_at_.size() - 1) +
                               " other GPUs; expected equally many links between every two GPUs, or NVSwitches");
      if (link.from < link.to)
        boost::add_edge(gpu_at_.at(link.from), gpu_at_.at(link.to), Wire{Wire::Kind::nvlink, "direct", link.count * link.GBps},
                        node_.graph);
    }
    if (direct_.empty()) return;
    if (links.size() != gpu_at_.size() * (gpu_at_.size() - 1))
      fail(direct_.front().element,
           "joins GPUs without a switch, and others have no such links; expected them between every two GPUs");
    node_.is_mesh = true;
  }

  void add_net(const pugi::xml_node& net, std::uint32_t card) {
    const std::uint32_t part = add_part(Part::Kind::nic, text(net, "name"));
    number_by_dev(net, part, nics_);
    const double GBps = number(net, "speed", 1) / mega_per_giga / bits_per_byte;
    boost::add_edge(card, part, Wire{Wire::Kind::line, "line", GBps}, node_.graph);
  }
};

}  // namespace

Node read_nccl_topology(const std::string& text) { return Importer(text).read(); }

}  // namespace tandem::topology
