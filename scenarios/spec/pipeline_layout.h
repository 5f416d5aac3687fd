#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::scenarios {

/// What each virtual stage of a pipeline holds, in the order of the model: a letter for each part. Empty: the layers are split by
/// the other fields.
using PipelineLayout = std::vector<std::string>;

/// The letters, as in Megatron-Core's `--pipeline-model-parallel-layout` (megatron/core/transformer/
/// pipeline_parallel_layer_layout.py).
namespace layout_part {
inline constexpr char embedding = 'E', layer = 't', mtp = 'm', loss = 'L';
}

std::int64_t count_in(const PipelineLayout& layout, char part);
std::int64_t count_in(std::string_view stage, char part);

/// Reads "Et*3|(tt|)*29,m|L": | between virtual stages, X*n and (...)*n repeat, commas are ignored. What the letters may be
/// combined to is for the checks to say. Throws std::invalid_argument with a sentence.
PipelineLayout parse_pipeline_layout(std::string_view text);

/// The shortest such text: no commas, equal stages in a row as (...|)*n.
std::string layout_text(const PipelineLayout& layout);

}  // namespace tandem::scenarios
