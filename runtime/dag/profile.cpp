#include "runtime/dag/profile.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>

namespace tandem {
namespace {

bool sound(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  if (shape.rank > shape.dims.size()) return false;
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.dims) {
    if (dim < 1 || dim > most / elements) return false;
    elements *= dim;
  }
  return true;
}

bool sound(const Timing& timing) {
  constexpr Seconds most = 1e6;
  return timing.lowest > 0 && timing.lowest <= timing.median && timing.median <= timing.highest && timing.highest < most &&
         timing.samples > 0;
}

/// What operations divide by.
bool sound(const OpAttributes& any) {
  if (const auto* groups = std::get_if<GroupsAttributes>(&any)) return groups->groups > 0;
  if (const auto* sequence = std::get_if<SequenceAttributes>(&any)) return sequence->ranks > 0;
  if (const auto* grouped = std::get_if<GroupedGemmAttributes>(&any)) return !grouped->rows.empty();
  if (const auto* routing = std::get_if<RoutingAttributes>(&any)) return routing->groups > 0 && routing->parts > 0;
  return true;
}

bool sound(const TimedKernel& kernel) {
  if (is_communication(kernel.op) || !sound(kernel.attributes)) return false;
  if (!std::ranges::all_of(kernel.operands, [](const OperandType& type) { return sound(type.shape); })) return false;
  try {
    return std::isfinite(cost_of(kernel).flops);
  } catch (const std::exception&) {  // operands or attributes that the operation does not take
    return false;
  }
}

bool sound(const MeasuredCollective& collective) {
  return is_communication(collective.op) && collective.machines > 0 && collective.members >= collective.machines &&
         collective.members % collective.machines == 0 && collective.bytes >= 0;
}

bool sound(const Site& site) {
  const auto can_be = [](double factor) { return factor > 0 && std::isfinite(factor); };
  const auto& [kk, kc, ko, cc, co, oo] = site.covariance;
  constexpr double rounding = 1 + 1e-9;
  const auto most = [](double both, double one, double other) { return both * both <= one * other * rounding; };
  const bool is_covariance = kk >= 0 && cc >= 0 && oo >= 0 && most(kc, kk, cc) && most(ko, kk, oo) && most(co, cc, oo);
  return can_be(site.kernels) && can_be(site.communication) && site.overhead >= 0 && std::isfinite(site.overhead) &&
         site.spread >= 1 && std::isfinite(site.spread) && is_covariance;
}

}  // namespace

Timing timing_of(std::vector<Seconds> samples) {
  if (samples.empty()) throw std::logic_error("a timing without samples");
  std::ranges::sort(samples);
  const std::size_t middle = samples.size() / 2;
  const Seconds median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back(), static_cast<std::int32_t>(samples.size())};
}

std::string first_flaw(const Profile& profile) {
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const auto& [kernel, timing] = profile.kernels[i];
    const std::string name = "kernel " + std::to_string(i) + " (" + std::string(operation(kernel.op).name) + ")";
    if (!sound(kernel)) return name + " has operands that its operation does not take";
    if (!sound(timing)) return name + " has no time that can be";
  }
  for (std::size_t i = 0; i < profile.collectives.size(); ++i) {
    const std::string name = "collective " + std::to_string(i);
    if (!sound(profile.collectives[i])) return name + " has members that cannot be, or is none";
    if (!sound(profile.collectives[i].timing)) return name + " has no time that can be";
  }
  if (!sound(profile.site)) return "the site has factors or covariances that cannot be";
  return "";
}

}  // namespace tandem
