#include "sim/speedup.h"

#include <array>
#include <cmath>

namespace tandem::sim {

std::string_view Speedup::group() const {
  constexpr std::array<std::string_view, 5> names{"none", "kernel", "axis", "tier", "stage"};
  return names.at(of.index());
}

std::string Speedup::name() const {
  if (const OpKind* op = std::get_if<OpKind>(&of)) return std::string(operation(*op).name);
  if (const Axis* axis = std::get_if<Axis>(&of)) return std::string(name_of(*axis));
  if (const Tier* tier = std::get_if<Tier>(&of)) return name_of(*tier);
  if (const PipelineStage* stage = std::get_if<PipelineStage>(&of)) {
    const std::string number = std::to_string(stage->number);
    return stage->mirror == stage->number ? "stage " + number : "stages " + number + " and " + std::to_string(stage->mirror);
  }
  return "nothing";
}

std::vector<Link> faster_links(std::vector<Link> links, const Speedup& speedup) {
  for (Link& link : links) link.capacity *= speedup.of_links(link.tier);
  return links;
}

Bytes at_pace(Bytes bytes, double times) { return times == 1 ? bytes : std::llround(static_cast<double>(bytes) / times); }

}  // namespace tandem::sim
