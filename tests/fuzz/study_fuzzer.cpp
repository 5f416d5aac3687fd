// What `tandem sweep`, `validate`, `diff`, `place` and `calibrate` read.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/reading/document.h"
#include "studies/calibrate/shapes_file.h"
#include "studies/diff/difference.h"
#include "studies/place/free_nodes.h"
#include "studies/step/step_result.h"
#include "studies/sweep/study.h"
#include "studies/validate/run_scenario.h"
#include "studies/validate/runs_file.h"
#include "studies/validate/scored_runs.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/traces/sample.h"

namespace tandem::fuzz {
namespace {

void read_study(const std::string& bytes) {
  const studies::Study study = studies::load_study(scratch_file("study.yaml", bytes));
  for (std::size_t point = 0; point < std::min<std::size_t>(study.size(), 16); ++point)
    studies::to_text(study.assignments(point));
}

/// A table; of its runs the first as a scenario.
void read_runs(const std::string& bytes) {
  const studies::RunsFile runs = studies::load_runs(scratch_file("runs.csv", bytes));
  if (!runs.rows.empty()) studies::scenario_of(runs.rows.front());
}

/// Predictions of one run.
void read_scored(const std::string& bytes) {
  static const std::string runs = [] {
    const std::string table = repository_file("bench/accuracy/runs.csv");
    return table.substr(0, table.find('\n', table.find('\n') + 1) + 1);
  }();
  studies::join_scored_runs(scratch_file("one-run.csv", runs), scratch_file("scored.csv", bytes));
}

/// A result, which does not differ from itself.
void read_result(const std::string& bytes) {
  const studies::StepResult result = studies::step_result_from_json(bytes, "input.json");
  const studies::ResultDifference difference = studies::difference_of({"a", result}, {"b", result});
  require(difference.is_none(), "a result differs from itself");
  studies::to_json_object(difference);
}

std::string small_result() {
  traces::Sample sample = traces::pipeline_sample(2, 2, 2);
  sample.dag.devices.front().memory_bandwidth = 1e12;
  sample.dag.devices.front().peak.fill(1e15);
  return studies::to_json(studies::summarize(sample.dag, sample.timeline, DType::bf16, {.backend = "host"}));
}

[[maybe_unused]] const Registered of_studies({
    {.name = "study",
     .read = read_study,
     .seeds =
         [] {
           std::vector<std::string> seeds = repository_files("scenarios/studies", ".yaml");
           std::erase_if(seeds, [](const std::string& text) { return text.size() > 2000; });
           seeds.push_back("scenario: {" + scenarios::to_yaml(scenarios::parse_yaml(scenarios::base_text(), "seed")).substr(1) +
                           "\ngrid: {parallelism.dp: [4, 8]}\npoints: [{training.global_batch: 16}]\nskip_invalid: true\n");
           return seeds;
         },
     .words_of = {"studies/sweep/study.cpp", "scenarios/spec/names.h"},
     .mutate = mutate_yaml},
    {.name = "runs",
     .read = read_runs,
     .seeds =
         [] {
           const std::string table = repository_file("bench/accuracy/runs.csv");
           const std::size_t header = table.find('\n') + 1, first = table.find('\n', header) + 1;
           return std::vector{table.substr(0, first), table.substr(0, table.find('\n', first) + 1)};
         },
     .words_of = {"studies/validate/runs_file.cpp", "studies/validate/run_scenario.cpp"}},
    {.name = "scored",
     .read = read_scored,
     .seeds =
         [] {
           return std::vector<std::string>{"id,measured_step_time_s,predicted_step_time_s\n01_sc21_table1-001,3.528,3.5\n"};
         }},
    {.name = "result",
     .read = read_result,
     .seeds = [] { return std::vector{small_result()}; },
     .words_of = {"studies/step/step_result_json.cpp", "studies/step/step_interval_json.cpp"},
     .mutate = mutate_json},
    {.name = "nodes",
     .read =
         [](const std::string& bytes) {
           studies::read_free_nodes(scratch_file("nodes", bytes), 1000, {.names = {"tux0", "tux1", "tux2"}, .per_node = 1});
         },
     .seeds = [] { return std::vector<std::string>{"3-5,8,12-15\n# spare\ntux[0-2]\n"}; }},
    {.name = "shapes",
     .read = [](const std::string& bytes) { studies::read_shapes_file(scratch_file("shapes", bytes)); },
     .seeds =
         [] {
           return std::vector<std::string>{
               "gemm bf16 128 256 512\nattention bf16 1024 8 8 64 causal # comment\n"
               "gemm fp32[128,1,256] fp32[512,256] fp32[128,1,512] | gemm 0 1 0\n"};
         },
     .words_of = {"traces/kernel_text.cpp", "studies/calibrate/shapes_file.cpp", "runtime/ops"}},
});

}  // namespace
}  // namespace tandem::fuzz
