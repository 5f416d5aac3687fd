#include "studies/validate/frameworks.h"

#include <algorithm>
#include <string>

namespace tandem::studies {
namespace {

// Sources of the defaults:
// - megatron-2021: Narayanan et al. 2021 (arXiv 2104.04473) train with activation recomputation, section 3.5, and without ZeRO;
//   sequence parallelism came with Korthikanti et al. 2022 (arXiv 2205.05198), which is megatron-2022.
// - megatron-core: --recompute-granularity is off and --use-distributed-optimizer is a choice; the examples that come with it set
//   --sequence-parallel wherever tp > 1. --expert-tensor-parallel-size defaults to tensor parallelism.
// - nemo: its pretraining recipes use the distributed optimizer and sequence parallelism, and recompute where they say so.
// - torchtitan: fully_shard, ZeRO 3; activation checkpointing "selective" in the configurations that come with it; tensor
//   parallelism always with sequence parallelism.
// - llm-foundry: FSDP's FULL_SHARD in the configurations that come with it; activation_checkpointing is on or off.
// - megatron-deepspeed: pipelines are DeepSpeed's, 1F1B; ZeRO 1 beside them. deepspeed: ZeRO's stages.
// - llama3: The Llama 3 Herd of Models (arXiv 2407.21783), section 3.3.2: interleaved stages, no recomputation, gradients not
//   resharded.
// - deepseek: DeepSeek-V3 (arXiv 2412.19437), section 3.2: ZeRO 1.
constexpr FrameworkDefaults frameworks[] = {
    {.name = "megatron-2021", .zero = "0", .sp = "0", .recompute = "full", .interleaves = true, .experts_split_like_tp = true},
    {.name = "megatron-2022",
     .zero = "0",
     .sp = "1 0",
     .recompute = "selective",
     .recompute_to_fit = "full",
     .interleaves = true,
     .experts_split_like_tp = true},
    {.name = "megatron-core",
     .zero = "1 0",
     .sp = "1",
     .recompute = "none selective",
     .recompute_to_fit = "full",
     .interleaves = true,
     .experts_split_like_tp = true},
    {.name = "nemo",
     .zero = "1",
     .sp = "1",
     .recompute = "none",
     .recompute_to_fit = "selective full",
     .interleaves = true,
     .experts_split_like_tp = true},
    {.name = "torchtitan",
     .zero = "3",
     .sp = "1",
     .recompute = "selective",
     .recompute_to_fit = "full",
     .selective = "selective-op",
     .interleaves = true,
     .compiles = true},
    {.name = "llm-foundry", .zero = "3", .sp = "0", .recompute = "none", .recompute_to_fit = "full"},
    {.name = "megatron-deepspeed", .zero = "1 0", .sp = "0", .recompute = "full"},
    {.name = "deepspeed", .zero = "1 2 3", .sp = "0", .recompute = "none", .recompute_to_fit = "full"},
    {.name = "llama3",
     .zero = "2",
     .sp = "1",
     .recompute = "none",
     .interleaves = true,
     .experts_split_like_tp = true,
     .always_interleaves = true},
    {.name = "deepseek", .zero = "1", .sp = "0", .recompute = "none", .recompute_to_fit = "selective full"},
    {.name = "generic",
     .zero = "1 0",
     .sp = "1 0",
     .recompute = "none selective",
     .recompute_to_fit = "full",
     .interleaves = true},
};

}  // namespace

const FrameworkDefaults& framework_of(const RunRow& row) {
  const std::string name = row.name("framework");
  const auto* found = std::ranges::find(frameworks, name, &FrameworkDefaults::name);
  return found == std::end(frameworks) ? *std::prev(std::end(frameworks)) : *found;
}

}  // namespace tandem::studies
