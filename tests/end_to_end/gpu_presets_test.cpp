// What the presets of GPUs state is what the cost models ask for.
#include <gtest/gtest.h>

#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "sim/attention_cost.h"
#include "sim/gemm_cost.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::gpu_presets_test {
namespace {

Device gpu_with(const std::vector<std::string>& overrides) {
  return parse_scenario(base_text(), "s.yaml", overrides).cluster.gpu;
}

/// Of a GPU that was announced and of which nothing was measured, shares of the peaks are all that is assumed.
bool is_measured_gpu(const std::string& name) { return name != "host-cpu" && name != "rubin"; }

TEST(GpuPresets, StateHowProductsAndAttentionAreTiled) {
  for (const std::string& name : preset_names(PresetKind::gpu)) {
    Device gpu = gpu_with({"cluster.gpu=" + name});
    const bool is_gpu = is_measured_gpu(name);
    for (const DType type : {DType::bf16, DType::f16, DType::f8})
      EXPECT_EQ(is_tiled(gpu, type), is_gpu && gpu.peak[static_cast<std::size_t>(type)] > 0) << name;
    EXPECT_EQ(states_attention(gpu, DType::bf16), is_gpu) << name;
    if (!is_gpu) continue;
    gpu = gpu_with({"cluster.gpu=" + name, "cluster.gpu.efficiency.attention.kernel=unfused"});
    EXPECT_EQ(gpu.efficiency.attention_kernel, AttentionKernel::unfused);
    EXPECT_TRUE(states_attention(gpu, DType::bf16)) << name;
  }
}

}  // namespace
}  // namespace tandem::studies::gpu_presets_test
