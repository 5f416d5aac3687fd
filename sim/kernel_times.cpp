#include "sim/kernel_times.h"

#include <algorithm>

namespace tandem {

KernelTimes::KernelTimes(const Dag& dag) : dag_(dag), models_(dag.devices.size()) {
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (!dag.devices[i].measured.empty()) models_[i].emplace(dag.devices[i]);
}

Seconds KernelTimes::of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  const std::optional<KernelModel>& model = models_[dag_.ranks[task.rank].device];
  return model ? model->time(kernel_of(dag_, id))
               : kernel_time(dag_.device_of(task), operation(task.op).op_class, cost_of(dag_, id));
}

Roofline KernelTimes::roofline_of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  const std::optional<KernelModel>& model = models_[dag_.ranks[task.rank].device];
  return model ? model->roofline(kernel_of(dag_, id))
               : tandem::roofline_of(dag_.device_of(task), operation(task.op).op_class, cost_of(dag_, id).math);
}

Seconds KernelTimes::lower_bound_of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  const bool measured = models_[dag_.ranks[task.rank].device].has_value();
  const Seconds at_peaks = kernel_lower_bound(dag_.device_of(task), cost_of(dag_, id));
  return measured ? std::min(at_peaks, of(id)) : at_peaks;
}

}  // namespace tandem
