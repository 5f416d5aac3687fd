#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/analysis/kinds.h"
#include "runtime/analysis/memory.h"
#include "runtime/analysis/time_parts.h"
#include "runtime/backend_names.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/site.h"
#include "runtime/dag/timeline.h"
#include "studies/step/device_memory.h"
#include "studies/step/expert_balance.h"
#include "studies/step/step_metrics.h"
#include "studies/step/sync_comparison.h"

namespace tandem {
struct MemoryOverTime;
}

namespace tandem::studies {

/// How a result came about.
struct RunFacts {
  std::string backend;           ///< see runtime/backend_names.h
  std::string collectives = {};  ///< how they were simulated: fluid, steps; empty where nothing was
  bool folded = false;
  std::size_t tasks_simulated = 0;  ///< of the step's: fewer where some stand for others in time, too
  Seconds wall = 0;
  Bytes peak_rss = 0;
  std::optional<Seconds> undated_step = {};  ///< the step once more, on a GPU that recorded no dates of tasks
};

/// The two kinds of steps under local SGD.
struct LocalStepTimes {
  Seconds local = 0;  ///< of a step without exchange between data-parallel replicas
  Seconds sync = 0;   ///< of one that ends with averaged weights
};

/// What a fold that merged unequal links (`--fold-tolerance`) can be off by.
struct MergedFold {
  double tolerance = 0;
  Seconds lower = 0;  ///< the step time if nothing collided
  Seconds upper = 0;  ///< if all that can collide did so all the time
};

/// Steps that were drawn with jitter.
struct JitterTimes {
  std::size_t draws = 0;
  Seconds p50 = 0, p90 = 0, p99 = 0, mean = 0;
  Seconds wall = 0;  ///< that drawing took
};

/// The axes whose exposed communication a result tells, in that order.
inline constexpr std::array communication_axes{Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};

/// What a planner wants to know of one step, or of the mean over several; the JSON result holds the same.
struct StepResult {
  std::string scenario;
  std::int64_t gpus = 0;
  std::string gpu;
  std::string gpu_architecture;  ///< "hopper"; of the first rank's
  std::string framework;
  Site site;  ///< that the GPUs are of
  std::int64_t tokens = 0;
  Seconds step_time = 0;
  std::int64_t sync_every = 1;               ///< steps that the mean was taken over
  std::optional<LocalStepTimes> step_kinds;  ///< simulated
  std::optional<JitterTimes> jitter;         ///< all else is of the undisturbed step
  std::optional<SyncComparison> sync;        ///< with `training.sync`; the result itself is of the synchronous step
  std::optional<MergedFold> merged_fold;     ///< absent where the fold is exact
  double tokens_per_second_per_gpu = 0;
  FlopsPerSecond model_flops_per_gpu = 0;  ///< causal attention counted at half, recompute not at all
  bool causal = true;                      ///< attention
  double mfu = 0;
  double hfu = 0;                          ///< what was computed, recompute included
  TimeParts parts;                         ///< read from JSON, with all compute under `Phase::forward`
  std::vector<StageTime> stage_times;      ///< empty where an older version's JSON has none
  std::vector<KindTime> kinds;             ///< the same
  std::optional<StepMetrics> metrics;      ///< absent where an older version's JSON has none
  std::optional<ExpertBalance> experts;    ///< see `expert_balance`
  std::optional<StepDocuments> documents;  ///< absent where each sequence is one
  std::vector<MemoryUse> stages;
  std::optional<DeviceMemory> device_memory;  ///< of the fullest of these ranks; absent where an older version's JSON has none
  Bytes gpu_memory = 0;                       ///< of the GPU that has least
  std::vector<std::string> warnings;          ///< of the scenario
  Seconds lower_bound = 0;
  Seconds upper_bound = 0;
  std::size_t rank_classes = 0;
  std::size_t link_classes = 0;
  std::size_t tasks = 0;
  RunFacts run;

  std::size_t fullest_stage() const;
  Bytes peak_memory() const { return stages[fullest_stage()].peak(); }
  /// Tokens of a document.
  double mean_document() const { return static_cast<double>(tokens) / static_cast<double>(documents->count); }
  double padding_share() const { return static_cast<double>(documents->padding) / static_cast<double>(tokens); }
  /// MFU if what padding computes counts as nothing.
  double mfu_without_padding() const { return mfu * (1 - documents->padding_flops_share); }
  bool is_simulated() const { return run.backend == simgrid_backend; }
  bool fits() const { return peak_memory() <= gpu_memory; }
};

/// Sums up what a timeline says of its DAG; for a DAG of several steps, returns the mean per step.
StepResult summarize(const Dag& dag, const Timeline& timeline, DType precision, const RunFacts& facts);
/// For whoever found the facts of the graph before, whose replay is used up: of this timeline, or of any that repeats nothing, as
/// this one. `over_time`: takes the memory of the fullest rank of each pipeline stage, unless null.
StepResult summarize(const Dag& dag, const Timeline& timeline, GraphFacts& graph, DType precision, const RunFacts& facts,
                     std::vector<MemoryOverTime>* over_time = nullptr);

/// Returns the stable JSON form: SI units, one line per key.
nlohmann::ordered_json to_json_object(const StepResult& result);
/// Returns the object `time_s` of that form.
nlohmann::ordered_json to_json_object(const TimeParts& parts);
/// Returns the list `kinds` of that form.
nlohmann::ordered_json to_json_list(const std::vector<KindTime>& kinds);
std::string to_json(const StepResult& result);

/// Reads what `to_json` wrote; `file` stands for the text in messages. JSON keeps no `inputs` of memory. Every version wrote the
/// keys scenario, step_time_s, time_s and memory.stages; others may be missing and leave 0, nothing or an empty list.
///
/// Throws InputError, which names the place where the text is no JSON, the key that is missing, or the value that cannot be.
StepResult step_result_from_json(const std::string& text, const std::string& file);
StepResult step_result_from_json(const nlohmann::ordered_json& json, const std::string& file);

/// Reads the file at `path`. Throws InputError, also where it cannot be read.
StepResult read_step_result(const std::string& path);

}  // namespace tandem::studies
