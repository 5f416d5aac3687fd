#include "sim/kernel_times.h"

#include <algorithm>
#include <stdexcept>

#include "sim/kernel_cost.h"

namespace tandem::sim {

KernelTimes::KernelTimes(const Dag& dag) : dag_(dag), models_(dag.devices.size()), known_(dag.first_of_kernel.size()) {
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (!dag.devices[i].measured.empty()) models_[i].emplace(dag.devices[i]);
}

namespace {

/// What runs on the host there only moves memory.
Seconds on_host(const Device& device, const OpCost& cost) {
  if (!(device.host_bandwidth > 0)) throw std::logic_error("a kernel on a host whose memory bandwidth is not known");
  return static_cast<double>(cost.bytes) / device.host_bandwidth;
}

}  // namespace

KernelTime KernelTimes::computed(TaskId id) const {
  const std::uint32_t index = dag_.ranks[dag_.tasks[id].rank].device;
  const Device& device = dag_.devices[index];
  const TimedKernel kernel = kernel_of(dag_, id);
  if (is_fused(kernel.attributes)) return {};
  if (dag_.tasks[id].stream == Stream::host) {
    const bool was_recorded = !(device.host_bandwidth > 0) && models_[index];
    const std::optional<Seconds> recorded = was_recorded ? models_[index]->measured(kernel) : std::nullopt;
    return {.total = recorded ? *recorded : on_host(device, cost_of(kernel))};
  }
  KernelTime time;
  const std::int64_t kernels = kernels_of(dag_.software, kernel.op, kernel.attributes);
  time.total = models_[index] ? models_[index]->time(kernel) : kernel_time(device, kernel, kernels);
  const Seconds extra = extra_time(device, dag_.software.beside(kernel.op, pass_of(dag_.tasks[id].phase)), kernel, kernels);
  if (device.multiprocessors == 0) {
    time.total += extra;
    return time;
  }
  // The time that the roofline does not explain (tiles, waves) is charged to the multiprocessors.
  const Roofline roofline = roofline_of(id);
  const OpCost cost = cost_of(kernel);
  time.launch = std::min(time.total, static_cast<double>(kernels) * roofline.launch / device.speed);
  const Seconds rest = time.total - time.launch;
  time.moving = std::min(rest, roofline.moving(cost) / device.speed);
  constexpr double rounding = 1e-9;
  const bool is_moving = time.moving >= rest * (1 - rounding);
  time.computing = !is_moving ? rest : roofline.arithmetic > 0 ? std::min(rest, roofline.computing(cost) / device.speed) : 0;
  time.total += extra;
  time.launch += extra;  // small kernels, most of which communication does not slow
  return time;
}

Roofline KernelTimes::roofline_of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  const std::optional<KernelModel>& model = models_[dag_.ranks[task.rank].device];
  return model ? model->roofline(kernel_of(dag_, id))
               : sim::roofline_of(dag_.device_of(task), operation(task.op).op_class, cost_of(dag_, id).math);
}

Seconds KernelTimes::lower_bound_of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  if (task.stream == Stream::host) return of(id);
  std::optional<Seconds>& bound = known(id).lower_bound;
  if (bound) return *bound;
  const bool measured = models_[dag_.ranks[task.rank].device].has_value();
  const Seconds at_peaks = kernel_lower_bound(dag_.device_of(task), cost_of(dag_, id));
  return *(bound = measured ? std::min(at_peaks, of(id)) : at_peaks);
}

}  // namespace tandem::sim
