#include "tests/end_to_end/step_constants.h"

#include <algorithm>
#include <array>

namespace tandem::studies {
namespace {

constexpr std::array generations{Architecture::ampere, Architecture::hopper, Architecture::blackwell};

bool scaled(double& value, double times) {
  const bool there = value != 0;
  value *= times;
  return there;
}

/// A number of a GPU of that generation.
StepConstant of_gpu(Architecture generation, const std::string& name, const std::function<bool(Device&, double)>& scale,
                    bool is_rate = true) {
  return {std::string(name_of(generation)) + " " + name,
          [generation, scale](Scenario& scenario, double times) {
            Device& gpu = scenario.cluster.gpu;
            return gpu.architecture == generation && scale(gpu, times);
          },
          is_rate};
}

/// Whether the step has products in this type: what is not cast is multiplied in the type that it is kept in.
bool multiplies_in(const Scenario& scenario, DType type) {
  const TrainingSpec& training = scenario.training;
  return type == training.storage() || type == training.precision;
}

bool has_scales_of_blocks(const Scenario& scenario) { return scenario.training.recipe == Recipe::mxfp8; }

bool issues_experts_one_by_one(const Scenario& scenario) {
  return scenario.model.moe.experts > 0 && std::ranges::count(scenario.software.kernel_per_expert, OpKind::grouped_gemm) > 0;
}

/// A number of products in a type on GPUs of that generation, of steps that `have` such.
StepConstant of_products(Architecture generation, const std::string& what, DType type, double GemmEfficiency::*number,
                         bool is_rate, bool (*have)(const Scenario&) = nullptr) {
  StepConstant constant = of_gpu(
      generation, "products " + what + " " + std::string(name_of(type)),
      [type, number](Device& gpu, double times) {
        GemmEfficiency& gemm = gpu.efficiency.gemm[static_cast<std::size_t>(type)];
        return gemm.rate > 0 && scaled(gemm.*number, times);
      },
      is_rate);
  constant.scale = [scale = constant.scale, type, have](Scenario& scenario, double times) {
    return multiplies_in(scenario, type) && (have == nullptr || have(scenario)) && scale(scenario, times);
  };
  return constant;
}

/// A number of the framework, which most scenarios have.
StepConstant of_framework(const std::string& name, const std::function<bool(Software&, double)>& scale) {
  return {"framework " + name, [scale](Scenario& scenario, double times) { return scale(scenario.software, times); }, false};
}

bool scale_attention(AttentionPass& pass, double times) {
  const bool there = pass.rate.front() > 0;
  for (double& rate : pass.rate) rate *= times;
  return there;
}

}  // namespace

std::vector<StepConstant> step_constants() {
  std::vector<StepConstant> all;
  for (const Architecture generation : generations) {
    for (const DType type : {DType::bf16, DType::f16, DType::f8}) {
      all.push_back(of_products(generation, "sustained", type, &GemmEfficiency::sustained, true));
      all.push_back(of_products(generation, "feed", type, &GemmEfficiency::feed, true));
      all.push_back(of_products(generation, "on stream", type, &GemmEfficiency::on_stream, false, issues_experts_one_by_one));
    }
    all.push_back(
        of_products(generation, "with scales of blocks", DType::f8, &GemmEfficiency::block_scaled, true, has_scales_of_blocks));
    all.push_back(of_gpu(generation, "attention sustained",
                         [](Device& gpu, double times) { return scaled(gpu.efficiency.attention_sustained, times); }));
    all.push_back(of_gpu(generation, "attention forward", [](Device& gpu, double times) {
      return scale_attention(gpu.efficiency.attention[static_cast<std::size_t>(gpu.efficiency.attention_kernel)].forward, times);
    }));
    all.push_back(of_gpu(generation, "attention backward", [](Device& gpu, double times) {
      return scale_attention(gpu.efficiency.attention[static_cast<std::size_t>(gpu.efficiency.attention_kernel)].backward, times);
    }));
    all.push_back(of_gpu(generation, "memory", [](Device& gpu, double times) { return scaled(gpu.efficiency.memory, times); }));
    all.push_back(of_gpu(generation, "memory by element",
                         [](Device& gpu, double times) { return scaled(gpu.efficiency.element_rate, times); }));
    all.push_back(of_gpu(
        generation, "launch", [](Device& gpu, double times) { return scaled(gpu.efficiency.launch, times); }, false));
  }
  all.push_back(of_framework("issue forward", [](Software& s, double times) { return scaled(s.issue.forward, times); }));
  all.push_back(of_framework("issue backward", [](Software& s, double times) { return scaled(s.issue.backward, times); }));
  all.push_back(
      of_framework("issue communication", [](Software& s, double times) { return scaled(s.issue.communication, times); }));
  all.push_back(of_framework("issue loop", [](Software& s, double times) { return scaled(s.issue.loop, times); }));
  all.push_back(of_framework("kernels beside an operation's", [](Software& s, double times) {
    bool any = false;
    for (auto& pass : s.extra)
      for (ExtraWork& work : pass) {
        any = scaled(work.bytes, times) || any;
        any = scaled(work.kernels, times) || any;
      }
    return any;
  }));
  all.push_back({"NVLink bandwidth", [](Scenario& s, double times) { return scaled(s.cluster.nvlink_efficiency, times); }});
  all.push_back({"NVLink latency", [](Scenario& s, double times) { return scaled(s.cluster.nvlink_latency_us, times); }, false});
  all.push_back({"NIC bandwidth", [](Scenario& s, double times) { return scaled(s.cluster.nic_efficiency, times); }});
  all.push_back({"NIC latency", [](Scenario& s, double times) { return scaled(s.cluster.nic_latency_us, times); }, false});
  return all;
}

}  // namespace tandem::studies
