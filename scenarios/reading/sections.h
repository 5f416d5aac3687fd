#pragma once

#include <vector>

#include "scenarios/reading/reader.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/campaign_spec.h"
#include "scenarios/spec/limits.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// One reader per section of the scenario, each in a file of its own (read_model.cpp, ...). They check every field by itself;
// checks/checks.h checks the fields against each other. All throw InputError.

ModelSpec read_model(const YamlNode& node);  ///< `head_dim` is 0 when left out where heads do not divide hidden
MoeSpec read_moe(const YamlNode& node, std::int64_t dense_ffn);
ClusterSpec read_cluster(const YamlNode& node);  ///< `gpus` is 0 when left out
FabricSpec read_fabric(const YamlNode& node);
Device read_gpu(const YamlNode& node, const std::string& path);                       ///< `path`: the field, for messages
void read_efficiency(const YamlNode& node, const std::string& path, Device& device);  ///< of a device whose peaks are known
AttentionKernel read_attention_kernel(const Reader& reader, std::string_view key);
ParallelismSpec read_parallelism(const YamlNode& node);  ///< `dp` is 0 when left out; `sp` as stated, also with tp 1
TrainingSpec read_training(const YamlNode& node);        ///< `bucket_parameters` is 0 when left out
Software read_software(const YamlNode& framework);
double read_attention_dropout(const YamlNode& framework);        ///< of unfused attention, where the scenario does not say
void choose_kernels(const YamlNode& framework, Device& device);  ///< that this framework runs on it, where it says so
std::vector<SlowGpu> read_slow_gpus(const YamlNode& faults);
MtbfSpec read_mtbf(const YamlNode& faults);
JitterSpec read_jitter(const YamlNode& faults, const Device& gpu);  ///< `gpu`: whose profile may say how much kernels vary
std::vector<LinkFault> read_link_faults(const YamlNode& faults);    ///< dead ones first, each kind in the order of the document

// Writers of the sections that are read into specs alone, each in the file of its reader. A writer returns every field that has a
// meaning in the spec, whether it was stated or a default; reading the section gives the same spec.

YamlNode write_model(const ModelSpec& model);
YamlNode write_moe(const MoeSpec& moe);
YamlNode write_parallelism(const ParallelismSpec& parallelism);
YamlNode write_training(const TrainingSpec& training);
YamlNode write_order(const std::vector<Axis>& order);

// The readers of single fields that a search chooses among. Each takes the reader of the field's section.

std::vector<Axis> read_order(const Reader& parallelism);  ///< innermost first; the default when left out
RankPlacement read_placement(const Reader& parallelism);  ///< a placement in a file is a list by now (placement_file.h)
ScheduleKind read_schedule(const Reader& training);
RecomputeSpec read_recompute(const Reader& training);  ///< without recompute_every

}  // namespace tandem::scenarios
