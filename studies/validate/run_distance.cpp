#include "studies/validate/run_distance.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/nearest.h"
#include "scenarios/spec/parameter_count.h"

namespace tandem::studies {
namespace {

constexpr double other_generation = 3, other_gpu = 1, other_framework = 1, other_kind = 3, other_precision = 2;

/// Cells that count where both runs have them.
struct OtherCell {
  const char* column;
  double distance;
};
constexpr OtherCell other_cells[] = {{"recompute", 1},     {"compiled", 1},      {"micro_batch", 0.5}, {"schedule", 0.5},
                                     {"vpp", 0.5},         {"zero", 0.5},        {"hsdp", 0.5},        {"attention", 0.5},
                                     {"dispatcher", 0.5},  {"sp", 0.25},         {"etp", 0.25},        {"fp8_recipe", 0.25},
                                     {"overlap_dp", 0.25}, {"overlap_tp", 0.25}, {"overlap_pp", 0.25}, {"overlap_ep", 0.25}};

/// A number of a run that says how far it is from others.
struct Measure {
  std::string_view what;
  double doubled = 1;  ///< distance of twice as much
  double (*of)(const Scenario&);
};

double gpus(const Scenario& s) { return static_cast<double>(s.parallelism.world_size()); }

const std::vector<Measure>& measures() {
  static const std::vector<Measure> all = {
      {"gpus", 1, gpus},
      {"parameters", 1, [](const Scenario& s) { return static_cast<double>(scenarios::parameter_count(s.model)); }},
      {"sequence", 1, [](const Scenario& s) { return static_cast<double>(s.training.sequence); }},
      {"tokens per GPU", 0.5,
       [](const Scenario& s) {
         return static_cast<double>(s.training.sequence) * static_cast<double>(s.training.global_batch) / gpus(s);
       }},
      {name_of(Axis::tp), 0.5, [](const Scenario& s) { return static_cast<double>(s.parallelism.tp); }},
      {name_of(Axis::pp), 0.5, [](const Scenario& s) { return static_cast<double>(s.parallelism.pp); }},
      {name_of(Axis::cp), 0.5, [](const Scenario& s) { return static_cast<double>(s.parallelism.cp); }},
      {name_of(Axis::ep), 0.5, [](const Scenario& s) { return static_cast<double>(s.parallelism.ep); }},
  };
  return all;
}

std::string kind_of(const Scenario& scenario) { return scenario.model.moe.experts > 0 ? "with experts" : "dense"; }

}  // namespace

std::vector<RunDifference> differences_of(const PlacedRun& here, const PlacedRun& there) {
  std::vector<RunDifference> differences;
  for (const Measure& measure : measures()) {
    const double a = measure.of(*here.scenario), b = measure.of(*there.scenario);
    if (a != b)
      differences.push_back({std::string(measure.what), grouped(std::llround(a)), grouped(std::llround(b)),
                             measure.doubled * std::abs(std::log2(a / b))});
  }
  const auto compare = [&](const char* what, const std::string& a, const std::string& b, double distance) {
    if (a != b) differences.push_back({what, a, b, distance});
  };
  const bool same_generation = here.scenario->cluster.gpu.architecture == there.scenario->cluster.gpu.architecture;
  compare("gpu", here.row->name("gpu"), there.row->name("gpu"), same_generation ? other_gpu : other_generation);
  compare("framework", here.row->name("framework"), there.row->name("framework"), other_framework);
  compare("model", kind_of(*here.scenario), kind_of(*there.scenario), other_kind);
  compare("precision", std::string(name_of(here.scenario->training.precision)),
          std::string(name_of(there.scenario->training.precision)), other_precision);
  for (const OtherCell& cell : other_cells)
    if (here.row->has(cell.column) && there.row->has(cell.column))
      compare(cell.column, here.row->name(cell.column), there.row->name(cell.column), cell.distance);
  std::ranges::stable_sort(differences, std::greater(), &RunDifference::distance);
  return differences;
}

double distance_of(const std::vector<RunDifference>& differences) {
  double sum = 0;
  for (const RunDifference& difference : differences) sum += difference.distance;
  return sum;
}

}  // namespace tandem::studies
