#include "studies/calibrate/profile_yaml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "scenarios/reading/document.h"
#include "scenarios/spec/names.h"
#include "sim/kernel_fit.h"
#include "traces/kernel_text.h"

namespace tandem::studies {
namespace {

std::string row_of(const Timing& t) {
  return fmt::format("{:.6g} {:.6g} {:.6g} {}", t.median * 1e6, t.lowest * 1e6, t.highest * 1e6, t.samples);
}

double bandwidth_of(const MeasuredKernel& measured) {
  return static_cast<double>(cost_of(measured.kernel).bytes) / measured.timing.median;
}

/// Of the fastest copy, bytes read and written each second; 0 without one.
double copy_bandwidth(const Profile& profile) {
  double copy = 0;
  for (const MeasuredKernel& measured : profile.kernels)
    if (measured.kernel.op == OpKind::scale) copy = std::max(copy, bandwidth_of(measured));
  return copy;
}

/// How long copies take, by the bytes that they read and write.
class CopyTimes {
 public:
  explicit CopyTimes(const Profile& profile) {
    for (const MeasuredKernel& measured : profile.kernels)
      if (measured.kernel.op == OpKind::scale) times_[cost_of(measured.kernel).bytes] = measured.timing.median;
  }
  bool any() const { return !times_.empty(); }

  /// Of a copy of so many bytes: on the line between the copies that move less and more, at the bandwidth of the largest beyond
  /// it.
  Seconds of(Bytes bytes) const {
    const auto above = times_.lower_bound(bytes);
    if (above == times_.end()) {
      const auto& [most, longest] = *times_.rbegin();
      return longest * static_cast<double>(bytes) / static_cast<double>(most);
    }
    if (above == times_.begin()) return above->second;
    const auto& [less, shorter] = *std::prev(above);
    return shorter + (above->second - shorter) * static_cast<double>(bytes - less) / static_cast<double>(above->first - less);
  }

 private:
  std::map<Bytes, Seconds> times_;
};

/// Of each memory-bound operation, its kernel that moves most.
std::map<std::string_view, const MeasuredKernel*> largest_by_operation(const Profile& profile) {
  std::map<std::string_view, const MeasuredKernel*> largest;
  for (const MeasuredKernel& measured : profile.kernels) {
    const Operation& op = operation(measured.kernel.op);
    if (op.op_class != OpClass::memory) continue;
    const MeasuredKernel*& kept = largest.try_emplace(op.name, &measured).first->second;
    if (cost_of(measured.kernel).bytes > cost_of(kept->kernel).bytes) kept = &measured;
  }
  return largest;
}

struct Spread {
  std::size_t kernels = 0;
  std::vector<double> spreads;  ///< (highest - lowest) / median
};

std::map<std::string_view, Spread> spread_by_operation(const Profile& profile) {
  std::map<std::string_view, Spread> by_operation;
  for (const auto& [kernel, timing] : profile.kernels) {
    Spread& spread = by_operation[operation(kernel.op).name];
    ++spread.kernels;
    spread.spreads.push_back((timing.highest - timing.lowest) / timing.median);
  }
  for (auto& [name, spread] : by_operation) std::ranges::sort(spread.spreads);
  return by_operation;
}

std::string site_yaml(const Site& site) {
  return fmt::format(
      "site:    # times as long as presets let expect, with the covariances of ln kernels, ln communication and overhead\n"
      "  runs: {}\n  gpu: {}\n  framework: {}\n  kernels: {}\n  communication: {}\n  overhead_s: {}\n  spread: {}\n"
      "  covariance: [{}]    # kk, kc, ko, cc, co, oo\n",
      site.runs, quoted_yaml(site.gpu), quoted_yaml(site.framework), site.kernels, site.communication, site.overhead, site.spread,
      fmt::join(site.covariance, ", "));
}

}  // namespace

std::vector<Fit> fits_of(const Profile& profile) {
  const FittedDevice fitted(Device{}, profile.kernels);
  std::vector<Fit> fits;
  const auto tera = [](double rate) { return fmt::format("{:.4g}", rate / 1e12); };
  const auto rate = [&](const std::string& name, OpClass op_class, DType type) {
    const FlopsPerSecond found = fitted.roofline(op_class, type).arithmetic;
    if (found > 0)
      fits.push_back({name + "_" + std::string(name_of(type)) + "_TFLOPS", tera(found), "upper quartile of the larger third"});
  };
  const Roofline memory = fitted.roofline(OpClass::memory, DType::f32);
  fits.push_back({"launch_us", fmt::format("{:.4g}", memory.launch * 1e6), "the shortest kernel"});
  for (const DType type : arithmetic_types) {
    rate("gemm", OpClass::gemm, type);
    rate("attention_forward", OpClass::attention_forward, type);
    rate("attention_backward", OpClass::attention_backward, type);
  }
  if (memory.memory > 0)
    fits.push_back({"memory_GBps", fmt::format("{:.4g}", memory.memory / 1e9), "median of the larger third"});
  const double copy = copy_bandwidth(profile);
  if (copy > 0) fits.push_back({"copy_GBps", fmt::format("{:.4g}", copy / 1e9), "the fastest copy, bytes read and written"});
  return fits;
}

namespace {

std::string kernels_yaml(const Profile& profile) {
  std::string out = "fits:\n";
  for (const Fit& fit : fits_of(profile)) out += fmt::format("  {}: {}    # {}\n", fit.name, fit.value, fit.note);
  out += "  spread:    # kernels measured; (highest - lowest) / median of a kernel's samples: the median kernel, the worst\n";
  for (const auto& [name, spread] : spread_by_operation(profile)) {
    out += fmt::format("    {}: [{}, {:.2g}, {:.2g}]\n", name, spread.kernels, spread.spreads[spread.spreads.size() / 2],
                       spread.spreads.back());
  }
  if (const CopyTimes copies(profile); copies.any()) {
    out +=
        "  bandwidth:    # of each memory-bound operation, over that of a copy of as many bytes; that of its kernel that moves "
        "most bytes, and these\n";
    for (const auto& [name, measured] : largest_by_operation(profile)) {
      const Bytes bytes = cost_of(measured->kernel).bytes;
      out += fmt::format("    {}: [{:.2f}, {}]\n", name, copies.of(bytes) / measured->timing.median, bytes);
    }
  }
  out += "kernels:    # = median, lowest and highest us, samples\n";
  for (const auto& [kernel, timing] : profile.kernels)
    out += "  - " + quoted_yaml(to_text(kernel) + " = " + row_of(timing)) + '\n';
  return out;
}

std::string collectives_yaml(const Profile& profile) {
  std::string out =
      "collectives:    # members, bytes, machines where there are several = median, lowest and highest us, samples\n";
  for (const MeasuredCollective& c : profile.collectives) {
    const std::string machines = c.machines > 1 ? fmt::format(" on {}", c.machines) : "";
    out += "  - " +
           quoted_yaml(fmt::format("{} {} {}{} = {}", operation(c.op).name, c.members, c.bytes, machines, row_of(c.timing))) +
           '\n';
  }
  return out;
}

}  // namespace

std::string to_yaml(const Profile& profile) {
  const ProfileOrigin& o = profile.origin;
  std::string out = fmt::format(
      "# A profile, for `cluster.profile`. Fits and spreads are for you to read; the simulator makes its own of the rows.\n"
      "machine:\n  backend: {}\n  device: {}\n  threads: {}\n  libraries: {}\n  date: {}\n  tandem: {}\n",
      quoted_yaml(o.backend), quoted_yaml(o.device), o.threads, quoted_yaml(o.libraries), quoted_yaml(o.date),
      quoted_yaml(o.tandem));
  if (profile.site.known()) out += site_yaml(profile.site);
  if (!profile.kernels.empty()) out += kernels_yaml(profile);
  if (!profile.collectives.empty()) out += collectives_yaml(profile);
  return out;
}

}  // namespace tandem::studies
