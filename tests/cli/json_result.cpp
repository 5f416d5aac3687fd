#include "tests/cli/json_result.h"

#include <gtest/gtest.h>

#include <regex>

namespace tandem::cli {
namespace {

const char* const keys[] = {
    "/scenario",
    "/gpus",
    "/gpu",
    "/tokens",
    "/step_time_s",
    "/tokens_per_s_per_gpu",
    "/model_tflops_per_gpu",
    "/mfu",
    "/hfu",
    "/flops_convention",
    "/bubble_fraction",
    "/time_s/compute",
    "/time_s/exposed/tp",
    "/time_s/exposed/cp",
    "/time_s/exposed/ep",
    "/time_s/exposed/pp",
    "/time_s/exposed/dp",
    "/time_s/bubble",
    "/time_s/optimizer",
    "/stages_s",
    "/kinds",
    "/memory/peak_bytes",
    "/memory/fits",
    "/bounds_s/lower",
    "/bounds_s/upper",
    "/warnings",
    "/run/ranks",
    "/run/rank_classes",
    "/run/link_classes",
    "/run/tasks",
    "/run/wall_s",
    "/run/peak_rss_bytes",
    "/run/backend",
    "/run/folded",
};
const char* const stage_keys[] = {"stage", "parameters", "gradients", "optimizer", "activations", "buffers", "peak_bytes"};

double sum_of_numbers(const nlohmann::json& tree) {
  if (tree.is_number()) return tree.get<double>();
  double sum = 0;
  for (const nlohmann::json& child : tree) sum += sum_of_numbers(child);
  return sum;
}

void expect_stages(const nlohmann::json& memory) {
  ASSERT_FALSE(memory["stages"].empty());
  double fullest = 0;
  for (const nlohmann::json& stage : memory["stages"]) {
    for (const char* key : stage_keys) EXPECT_TRUE(stage.contains(key)) << key;
    fullest = std::max(fullest, stage.at("peak_bytes").get<double>());
  }
  EXPECT_EQ(fullest, memory.at("peak_bytes").get<double>());
}

constexpr const char* compute_keys[] = {"forward", "backward_input", "backward_weight", "recompute"};

/// Each stage's parts add up to the step time, and the stages' mean is that of all ranks.
void expect_stage_times(const nlohmann::json& result) {
  const double step = result["step_time_s"].get<double>();
  const double gpus = result["gpus"].get<double>();
  EXPECT_EQ(result["stages_s"].size(), result["memory"]["stages"].size());
  double ranks = 0, compute = 0, exposed = 0, bubble = 0;
  for (nlohmann::json stage : result["stages_s"]) {
    const double share = stage.at("ranks").get<double>() / gpus;
    stage.erase("stage");
    stage.erase("ranks");
    EXPECT_NEAR(sum_of_numbers(stage), step, 1e-9 * step);
    for (const char* key : compute_keys) compute += share * stage.at(key).get<double>();
    exposed += share * sum_of_numbers(stage.at("exposed"));
    bubble += share * stage.at("bubble").get<double>();
    ranks += share;
  }
  EXPECT_NEAR(ranks, 1, 1e-9);
  EXPECT_NEAR(compute, result["time_s"]["compute"].get<double>(), 1e-9 * step);
  EXPECT_NEAR(exposed, sum_of_numbers(result["time_s"]["exposed"]), 1e-9 * step);
  EXPECT_NEAR(bubble, result["time_s"]["bubble"].get<double>(), 1e-9 * step);
}

/// Kernels run one at a time, so that their kinds add up to compute and the optimizer; hidden communication adds to nothing.
void expect_kinds(const nlohmann::json& result) {
  const double step = result["step_time_s"].get<double>();
  double compute = 0, optimizer = 0, communication = 0;
  for (const nlohmann::json& kind : result["kinds"]) {
    const auto name = kind.at("name").get<std::string>();
    const double time = kind.at("time_s").get<double>();
    EXPECT_GT(kind.at("count").get<double>(), 0) << name;
    (name.ends_with(")") ? communication : kind.at("phase") == "optimizer" ? optimizer : compute) += time;
  }
  EXPECT_NEAR(compute, result["time_s"]["compute"].get<double>(), 1e-9 * step);
  EXPECT_NEAR(optimizer, result["time_s"]["optimizer"].get<double>(), 1e-9 * step);
  EXPECT_GE(communication, sum_of_numbers(result["time_s"]["exposed"]) - 1e-9 * step);
}

}  // namespace

nlohmann::json checked_result(const std::string& text) {
  nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(result.is_discarded()) << text;
  for (const char* key : keys) {
    const bool present = result.contains(nlohmann::json::json_pointer(key));
    EXPECT_TRUE(present) << key;
    if (!present) return result;
  }
  expect_stages(result["memory"]);
  const double step = result["step_time_s"].get<double>();
  EXPECT_GT(step, 0);
  EXPECT_NEAR(sum_of_numbers(result["time_s"]), step, 1e-9 * step);
  expect_stage_times(result);
  expect_kinds(result);
  EXPECT_GT(result["mfu"].get<double>(), 0);
  EXPECT_LE(result["mfu"].get<double>(), result["hfu"].get<double>());
  return result;
}

void expect_within_bounds(const nlohmann::json& result) {
  EXPECT_LE(result["bounds_s"]["lower"].get<double>(), result["step_time_s"].get<double>());
  EXPECT_LE(result["step_time_s"].get<double>(), result["bounds_s"]["upper"].get<double>());
}

std::string without_run_costs(const std::string& json_text) {
  return std::regex_replace(json_text, std::regex("\"(wall_s|peak_rss_bytes)\": [-+.e0-9]+"), "");
}

}  // namespace tandem::cli
