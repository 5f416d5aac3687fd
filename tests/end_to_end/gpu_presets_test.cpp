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

TEST(GpuPresets, StateHowProductsAndAttentionAreTiled) {
  for (const std::string& name : preset_names(PresetKind::gpu)) {
    Device gpu = gpu_with({"cluster.gpu=" + name});
    // Of a GPU that was announced and of which nothing was measured, shares of the peak are all that is assumed of products.
    // Of AMD's shares alone are stated, as of the host.
    const bool is_gpu = name != "host-cpu" && !name.starts_with("mi3"), is_tiled_gpu = is_gpu && name != "rubin";
    for (const DType type : {DType::bf16, DType::f16, DType::f8})
      EXPECT_EQ(is_tiled(gpu, type), is_tiled_gpu && gpu.peak[static_cast<std::size_t>(type)] > 0) << name;
    EXPECT_EQ(states_attention(gpu, DType::bf16), is_gpu) << name;
    if (!is_tiled_gpu) continue;
    gpu = gpu_with({"cluster.gpu=" + name, "cluster.gpu.efficiency.attention.kernel=unfused"});
    EXPECT_EQ(gpu.efficiency.attention_kernel, AttentionKernel::unfused);
    EXPECT_TRUE(states_attention(gpu, DType::bf16)) << name;
  }
}

}  // namespace
}  // namespace tandem::studies::gpu_presets_test
