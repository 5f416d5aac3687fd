#include "sim/kernel_times.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <stdexcept>

#include "sim/kernel_cost.h"

namespace tandem::sim {

std::size_t KernelTimes::Hash::operator()(const Known& known) const {
  const Task& task = dag.tasks[known.task];
  std::size_t hash = task.attributes * op_kind_count + static_cast<std::size_t>(task.op);
  boost::hash_combine(hash, dag.ranks[task.rank].device);
  boost::hash_combine(hash, task.stream == Stream::host);
  boost::hash_combine(hash, static_cast<int>(pass_of(task.phase)));
  for (const Operand& operand : dag.operands_of(known.task))
    for (const std::int64_t dim : dag.buffers[operand.buffer].shape.dims) boost::hash_combine(hash, dim);
  return hash;
}

bool KernelTimes::Same::operator()(const Known& a, const Known& b) const {
  const Task &one = dag.tasks[a.task], &other = dag.tasks[b.task];
  if (one.op != other.op || one.attributes != other.attributes || pass_of(one.phase) != pass_of(other.phase) ||
      dag.ranks[one.rank].device != dag.ranks[other.rank].device ||
      (one.stream == Stream::host) != (other.stream == Stream::host))
    return false;
  const auto same_type = [&](const Operand& x, const Operand& y) {
    const Buffer &left = dag.buffers[x.buffer], &right = dag.buffers[y.buffer];
    return left.dtype == right.dtype && left.shape == right.shape && left.scaling == right.scaling;
  };
  return std::ranges::equal(dag.operands_of(a.task), dag.operands_of(b.task), same_type);
}

KernelTimes::KernelTimes(const Dag& dag)
    : dag_(dag), models_(dag.devices.size()), known_(0, Hash{dag}, Same{dag}), of_task_(dag.tasks.size()) {
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

const KernelTimes::Known& KernelTimes::known(TaskId id) const {
  const Known*& known = of_task_[id];
  if (known != nullptr) return *known;
  known = &*known_.insert({.task = id}).first;
  return *known;
}

const KernelTime& KernelTimes::parts_of(TaskId id) const {
  std::optional<KernelTime>& time = known(id).time;
  if (!time) time = computed(id);
  return *time;
}

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
