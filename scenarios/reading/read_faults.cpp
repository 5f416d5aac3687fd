#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/base/order_statistics.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

Reader faults_of(const YamlNode& node) {
  return Reader(node, "faults", {"slow_gpu", "dead_link", "slow_link", "jitter", "mtbf"});
}

/// Of how much kernels vary in a profile: the median, over those that ran several times, of deviation over median. A profile has
/// the range of so many samples.
double measured_variation(const Device& gpu, const Place& place) {
  std::vector<double> variations;
  for (const MeasuredKernel& measured : gpu.measured) {
    const Timing& timing = measured.timing;
    if (timing.samples < 2) continue;
    variations.push_back(deviation_of_range(timing.highest - timing.lowest, static_cast<std::size_t>(timing.samples)) /
                         timing.median);
  }
  if (variations.empty())
    throw InputError(place, "faults.jitter.kernel is measured, and no profile says how much kernels vary on " + gpu.name +
                                "; expected a number, or a cluster.profile of `tandem calibrate`");
  const auto middle = variations.begin() + std::ssize(variations) / 2;
  std::ranges::nth_element(variations, middle);
  return *middle;
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

JitterSpec read_jitter(const YamlNode& node, const Device& gpu) {
  const Reader faults = faults_of(node);
  if (!faults.has("jitter")) return {};
  const YamlNode& stated = faults.child("jitter");
  const Reader jitter(stated, "faults.jitter", {"kernel", "rank", "communication", "draws", "seed"});
  constexpr Range<double> variation{0, 2};
  const YamlNode* kernel = stated.find("kernel");
  const bool measured = kernel != nullptr && kernel->kind == YamlNode::Kind::scalar && kernel->text == "measured";
  return {.kernel = measured ? measured_variation(gpu, kernel->place) : jitter.number("kernel", variation, 0),
          .rank = jitter.number("rank", variation, 0),
          .communication = jitter.number("communication", variation, 0),
          .draws = jitter.integer("draws", {1, 100'000}, 100),
          .seed = static_cast<std::uint64_t>(jitter.integer("seed", {0, std::numeric_limits<std::int64_t>::max()}, 1))};
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

}  // namespace tandem::scenarios
