#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

// What presets state for `tandem validate`, whose tables leave much of a run open. Scenarios have neither field:
//   pod    of a GPU: the cluster that is sold with it, a preset or a file beside the GPU's
//   runs   of a framework: FrameworkRuns, field by field

/// What a framework does where a run does not say; lists have the likeliest first.
struct FrameworkRuns {
  std::vector<std::int64_t> zero;
  std::vector<bool> sp;                       ///< where tp > 1
  std::vector<std::string> recompute;         ///< none, selective or full, of a run that fits with it
  std::vector<std::string> recompute_to_fit;  ///< the same of one that does not
  std::string selective = "selective";        ///< `training.recompute` for what the framework calls selective
  bool interleaves = false;                   ///< has a schedule with several model chunks per stage
  bool always_interleaves = false;
  bool experts_split_like_tp = false;    ///< a blank etp is tp
  std::string low_precision_grad_dtype;  ///< `training.grad_dtype` of runs in fp8 or fp4; empty: the framework's own
  std::string rack_dispatcher;  ///< `parallelism.dispatcher` of runs on racks, whose NVLink joins several hosts; empty: NCCL's
  bool compiles = false;        ///< the preset says what torch.compile makes of it
};

/// The `runs` of a framework's preset, whose fields these are; nothing where it has none. Throws InputError.
std::optional<FrameworkRuns> read_framework_runs(const YamlNode& framework);

/// Those of the preset of that name, or in that file, which counts from `folder`; those of `generic` where there is no such
/// preset, or where it has none. Throws InputError.
FrameworkRuns framework_runs(const YamlNode& name, const std::string& folder);

/// The `pod` of a GPU's preset, whose fields these are; null where it has none. Throws InputError unless it is a name.
const YamlNode* read_pod(const YamlNode& gpu);

/// The pod of the GPU preset of that name, or in that file, which counts from `folder`: the name of a cluster preset, or the
/// absolute path of a file. Throws InputError where there is no such GPU, or it has no pod.
YamlNode pod_of_gpu(const YamlNode& name, const std::string& folder);

}  // namespace tandem::scenarios
