// Step times and memory as they were measured, from whatever of them a run prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "studies/validate/measured_memory.h"
#include "studies/validate/measured_step.h"
#include "studies/validate/run_scenario.h"
#include "tests/studies/runs_table.h"

namespace tandem::studies::validate_measured_test {
namespace {

using testing::HasSubstr;

RunRow row_of(const RunCells& cells) { return load_runs(RunsTable({cells}).file()).rows.front(); }

Scenario tiny_scenario(const RunCells& changes = {}) { return scenario_of(row_of(tiny_run(changes))).scenario; }

double tokens(const Scenario& s) {
  return static_cast<double>(s.training.sequence) * static_cast<double>(s.training.global_batch);
}

TEST(CountedFlops, OfAGptIsTheClosedFormOfItsPaper) {
  // A GPT's layer has 12 h^2 weights, its LM head h V; a token attends with 12 l s h FLOPs: 72 l h^2 (1 + s / 6h + V / 12lh).
  const Scenario s = tiny_scenario();
  const double flops = counted_flops("model flops, non-causal", s).flops;
  EXPECT_NEAR(counted_flops("72bslh^2(1+s/6h+v/12lh)", s).flops / flops, 1, 1e-12);
  EXPECT_NEAR(flops / tokens(s), 6 * (4.0 * 12 * 256 * 256 + 256.0 * 1024) + 12.0 * 4 * 128 * 256, 1e-3);
}

TEST(CountedFlops, FullRecomputationAddsAForwardOfTheLayers) {
  const Scenario s = tiny_scenario();
  const double model = counted_flops("72bslh^2", s).flops, recomputed = counted_flops("sc21 with recompute", s).flops;
  const double head = 6.0 * 256 * 1024 * tokens(s);
  EXPECT_NEAR((recomputed - head) / (model - head), 4.0 / 3, 1e-12);
}

TEST(CountedFlops, CausalAttentionCountsHalf) {
  const Scenario s = tiny_scenario();
  const double full = counted_flops("model flops, non-causal", s).flops, half = counted_flops("causal-halved", s).flops;
  EXPECT_NEAR(full - half, 6.0 * 4 * 128 * 256 * tokens(s), 1);
}

TEST(CountedFlops, AnExpertCountsAsOftenAsTokensChooseIt) {
  const RunCells moe = {{"experts", "8"}, {"top_k", "2"}, {"moe_ffn", "512"}, {"gated", "1"}};
  const Scenario two = tiny_scenario(moe);
  RunCells more = moe;
  more["top_k"] = "3";
  const double one_expert = 6.0 * 4 * 3 * 256 * 512 * tokens(two);
  EXPECT_NEAR(counted_flops("non-causal", tiny_scenario(more)).flops - counted_flops("non-causal", two).flops, one_expert, 1);
}

TEST(CountedFlops, TellsWhatNobodyVerified) {
  const Scenario s = tiny_scenario();
  EXPECT_TRUE(counted_flops("model flops, non-causal", s).verified);
  EXPECT_TRUE(counted_flops("causal", s).verified);
  EXPECT_FALSE(counted_flops("", s).verified);
  EXPECT_FALSE(counted_flops("megatron model flops, convention unverified (non-causal likely)", s).verified);
  const CountedFlops open = counted_flops("causal or not is unverified", s);
  EXPECT_FALSE(open.verified);
  EXPECT_EQ(open.flops, counted_flops("non-causal", s).flops);
}

TEST(MeasuredStep, TakesTheMostDirectOfWhatIsPrinted) {
  const RunCells all = {{"step_time_s", "0.5"}, {"tokens_per_s_per_gpu", "1000"}, {"tflops_per_gpu", "10"}, {"mfu_pct", "20"}};
  RunCells cells = tiny_run(all);
  const Scenario s = tiny_scenario();
  EXPECT_EQ(measured_step(row_of(cells), s).time, 0.5);
  cells["step_time_s"] = "";
  EXPECT_DOUBLE_EQ(*measured_step(row_of(cells), s).time, 128.0 * 64 / (8 * 1000));
  cells["tokens_per_s_per_gpu"] = "";
  cells["flops_formula"] = "model FLOPs, NON-causal";
  const double flops = counted_flops("non-causal", s).flops;
  EXPECT_DOUBLE_EQ(*measured_step(row_of(cells), s).time, flops / (8 * 10e12));
  cells["tflops_per_gpu"] = "";
  const double peak = s.cluster.gpu.peak[static_cast<std::size_t>(DType::bf16)];
  const MeasuredStep from_mfu = measured_step(row_of(cells), s);
  EXPECT_DOUBLE_EQ(*from_mfu.time, flops / (8 * 0.2 * peak));
  EXPECT_THAT(from_mfu.note, HasSubstr("step time from MFU by model FLOPs, NON-causal"));
  cells["mfu_pct"] = "";
  EXPECT_FALSE(measured_step(row_of(cells), s).time);
}

TEST(MeasuredMemory, KnowsItsUnit) {
  const auto memory = [](const std::string& amount, const std::string& kind) {
    return measured_memory(row_of(tiny_run({{"memory_gb", amount}, {"memory_kind", kind}})));
  };
  const auto peak = [&](const std::string& kind) { return memory("2", kind).peaks.at(0); };
  EXPECT_EQ(peak("").bytes, 2'000'000'000);
  EXPECT_EQ(peak("").figure, MemoryFigure::tensors);
  EXPECT_EQ(peak("peak reserved GiB").bytes, 2LL << 30);
  EXPECT_EQ(peak("peak reserved GiB").figure, MemoryFigure::reserved);
  EXPECT_EQ(peak("peak allocated GiB, max over ranks").figure, MemoryFigure::allocated);
  EXPECT_EQ(peak("nvidia-smi max over nodes").figure, MemoryFigure::device);
  EXPECT_EQ(peak("nvidia-smi max over nodes").bytes, 2LL << 30);
  EXPECT_TRUE(memory("OOM", "").out_of_memory);
  EXPECT_TRUE(memory("OOM", "").peaks.empty());
  EXPECT_FALSE(memory("", "").out_of_memory);
  const auto both =
      measured_memory(row_of(tiny_run({{"memory_gb", "2"}, {"memory_kind", "peak allocated GiB"}, {"reserved_gib", "3"}})));
  ASSERT_EQ(both.peaks.size(), 2U);
  EXPECT_EQ(both.peaks[1].figure, MemoryFigure::reserved);
  EXPECT_EQ(both.peaks[1].bytes, 3LL << 30);
}

}  // namespace
}  // namespace tandem::studies::validate_measured_test
