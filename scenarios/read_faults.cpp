#include <algorithm>
#include <string_view>
#include <utility>

#include "scenarios/reader.h"
#include "scenarios/sections.h"

namespace tandem {
namespace {

Reader faults_of(const YamlNode& node) {
  Reader faults(node, "faults", {"slow_gpu", "dead_link", "slow_link", "jitter", "mtbf"});
  faults.not_yet({"jitter"});
  return faults;
}

SlowGpu read_slow_gpu(const YamlNode& node) {
  const Reader slow_gpu(node, "faults.slow_gpu", {"rank", "factor"});
  return {.rank = slow_gpu.integer("rank", {0, max_gpus - 1}), .factor = slow_gpu.number("factor", {1e-6, 1e6})};
}

/// `fault` is a mapping of faults.dead_link or faults.slow_link.
LinkFault read_where(const Reader& fault, const std::string& kind) {
  using Where = LinkFault::Where;
  constexpr std::pair<std::string_view, Where> places[] = {
      {"gpu", Where::gpu}, {"nic", Where::nic}, {"rail", Where::rail}, {"leaf", Where::leaf}, {"pod", Where::pod}};
  LinkFault found;
  std::string_view named;
  for (const auto& [key, where] : places) {
    if (!fault.has(key)) continue;
    if (!named.empty())
      fault.fail(key, kind + " names " + std::string(named) + " and " + std::string(key) + ", expected one of the two");
    named = key;
    found.where = where;
    found.index = fault.integer(key, {0, max_gpus - 1});
  }
  if (named.empty()) fault.fail("nic", kind + " names no link, expected one of gpu, nic, rail, leaf and pod, with its number");
  if (!fault.has("cable")) return found;
  if (found.where != Where::leaf && found.where != Where::pod)
    fault.fail("cable", kind + " names a cable of a " + std::string(named) + ", expected one of a leaf or pod");
  found.cable = fault.integer("cable", {0, 65'535});
  return found;
}

}  // namespace

std::vector<SlowGpu> read_slow_gpus(const YamlNode& node) {
  const Reader faults = faults_of(node);
  std::vector<SlowGpu> slow_gpus;
  for (const YamlNode* item : one_or_several(faults.child("slow_gpu"))) {
    slow_gpus.push_back(read_slow_gpu(*item));
    const std::int64_t rank = slow_gpus.back().rank;
    if (std::ranges::count(slow_gpus, rank, &SlowGpu::rank) > 1)
      throw InputError(item->place, "rank " + std::to_string(rank) + " stands in faults.slow_gpu twice, expected it once");
  }
  return slow_gpus;
}

MtbfSpec read_mtbf(const YamlNode& node) {
  const Reader mtbf(faults_of(node).child("mtbf"), "faults.mtbf", {"gpu_hours", "node_hours", "link_hours", "software_hours"});
  const auto hours_of = [&](const char* key) { return mtbf.has(key) ? mtbf.number(key, {1e-3, 1e12}) : 0.0; };
  return {.gpu_hours = hours_of("gpu_hours"),
          .node_hours = hours_of("node_hours"),
          .link_hours = hours_of("link_hours"),
          .software_hours = hours_of("software_hours")};
}

std::vector<LinkFault> read_link_faults(const YamlNode& node) {
  const Reader faults = faults_of(node);
  std::vector<LinkFault> links;
  for (const YamlNode* item : one_or_several(faults.child("dead_link"))) {
    const Reader dead(*item, "faults.dead_link", {"gpu", "nic", "rail", "leaf", "pod", "cable"});
    links.push_back(read_where(dead, "faults.dead_link"));
    if (links.back().where == LinkFault::Where::gpu)
      dead.fail("gpu", "a GPU's NVLink port can be slow but not dead, for nothing would reach its GPU; expected slow_link");
  }
  for (const YamlNode* item : one_or_several(faults.child("slow_link"))) {
    const Reader slow(*item, "faults.slow_link", {"gpu", "nic", "rail", "leaf", "pod", "cable", "factor"});
    links.push_back(read_where(slow, "faults.slow_link"));
    links.back().factor = slow.number("factor", {1e-6, 0.999999});
  }
  return links;
}

}  // namespace tandem
