#include "tests/end_to_end/metamorphic.h"

#include "studies/step/simulated_step.h"

namespace tandem::studies {
namespace {

void make_faster(Device& gpu, double times) {
  for (FlopsPerSecond& peak : gpu.peak) peak *= times;
  gpu.memory_bandwidth *= times;
  gpu.host_bandwidth *= times;
  gpu.efficiency.element_rate *= times;
  for (GemmEfficiency& gemm : gpu.efficiency.gemm) {
    gemm.feed *= times;
    gemm.store *= times;
    gemm.launch /= times;
    gemm.split /= times;
    gemm.on_stream /= times;
  }
  for (AttentionEfficiency& attention : gpu.efficiency.attention) {
    attention.forward.tile /= times;
    attention.backward.tile /= times;
  }
  gpu.efficiency.launch /= times;
}

}  // namespace

Seconds step_time(const Scenario& scenario) { return simulate_step(scenario, true).result.step_time; }

Scenario with_faster_gpus(Scenario scenario, double times) {
  make_faster(scenario.cluster.gpu, times);
  for (topology::OtherGpus& other : scenario.cluster.other_gpus) make_faster(other.gpu, times);
  scenario.cluster.host.memory_GBps *= times;
  return scenario;
}

Scenario with_wider_links(Scenario scenario, double times) {
  ClusterSpec& cluster = scenario.cluster;
  cluster.nvlink_GBps *= times;
  cluster.nic_gbps *= times;
  cluster.host.link_GBps *= times;
  for (topology::PcieSpec::Port& port : cluster.pcie.ports) port.GBps *= times;
  for (topology::SwitchSpec& switches : cluster.fabric.switches)
    for (topology::SwitchSpec::Uplink& uplink : switches.up) uplink.gbps *= times;
  return scenario;
}

Scenario with_latencies(Scenario scenario, double times) {
  scenario.cluster.nvlink_latency_us *= times;
  scenario.cluster.nic_latency_us *= times;
  scenario.cluster.switch_latency_us *= times;
  scenario.cluster.host.link_latency_us *= times;
  return scenario;
}

Scenario with_issue_times(Scenario scenario, double times) {
  IssueCost& issue = scenario.software.issue;
  for (Seconds IssueCost::*cost : {&IssueCost::forward, &IssueCost::backward, &IssueCost::communication, &IssueCost::loop})
    issue.*cost *= times;
  return scenario;
}

Scenario without_overlap(Scenario scenario) {
  TrainingSpec& training = scenario.training;
  training.overlap_dp = training.overlap_tp = training.overlap_pp = training.overlap_ep = false;
  return scenario;
}

}  // namespace tandem::studies
