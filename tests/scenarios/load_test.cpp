#include "scenarios/reading/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::load_test {
namespace {

Scenario from_line(std::size_t index, const std::string& line) {
  std::vector<std::string> lines = base_lines();
  lines[index] = line;
  return parse_scenario(joined_lines(lines), "folder/s.yaml", {});
}

Scenario with_parallelism(const std::string& line) { return from_line(3, line); }
Scenario with_training(const std::string& line) { return from_line(4, line); }

TEST(Load, FillsInWhatIsLeftOut) {
  const Scenario scenario = parse_scenario(
      "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096}\n"
      "cluster: {preset: dgx-h100, gpus: 8}\n"
      "training: {sequence: 1024, global_batch: 16}\n",
      "folder/my-run.yaml", {});
  EXPECT_EQ(scenario.name, "my-run");
  EXPECT_EQ(scenario.model.kv_heads, 8);
  EXPECT_EQ(scenario.model.head_dim, 512 / 8);
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.parallelism.zero, 1);
  EXPECT_EQ(scenario.training.micro_batch, 1);
  EXPECT_EQ(scenario.training.precision, DType::bf16);
  EXPECT_EQ(scenario.training.grad_dtype, DType::f32);
  EXPECT_EQ(scenario.training.schedule, ScheduleKind::one_f_one_b);
  EXPECT_TRUE(scenario.training.overlap_dp);
  EXPECT_FALSE(scenario.training.overlap_tp);
  EXPECT_TRUE(scenario.slow_gpus.empty());
}

TEST(Load, GpusOrDpFollowFromTheOther) {
  EXPECT_EQ(with_parallelism("parallelism: {tp: 4, pp: 2}").parallelism.dp, 4);
  EXPECT_EQ(from_line(2, "cluster: {preset: dgx-h100}").cluster.gpus, 32);
}

TEST(Load, BucketsAreMegatronsUnlessGivenInMegabytes) {
  EXPECT_EQ(parse_scenario(base_text(), "s.yaml", {}).training.bucket_parameters, 40'000'000);
  const std::vector<std::string> wide{"cluster.gpus=1024", "parallelism.dp=128", "training.global_batch=128"};
  EXPECT_EQ(parse_scenario(base_text(), "s.yaml", wide).training.bucket_parameters, 128 * 1'000'000);
  EXPECT_EQ(with_training("training: {sequence: 1024, global_batch: 16, bucket_MB: 100}").training.bucket_parameters,
            100'000'000 / 4);
  EXPECT_EQ(
      with_training("training: {sequence: 1024, global_batch: 16, bucket_MB: 100, grad_dtype: bf16}").training.bucket_parameters,
      100'000'000 / 2);
}

TEST(Load, SequenceParallelismWithoutTensorParallelismIsNothing) {
  EXPECT_FALSE(with_parallelism("parallelism: {tp: 1, sp: true, pp: 2, dp: 16}").parallelism.sp);
}

TEST(Load, LongNames) {
  const Scenario scenario = with_parallelism(
      "parallelism: {tensor_model_parallel_size: 2, sequence_parallel: true, pipeline_model_parallel_size: 4, "
      "virtual_pipeline_model_parallel_size: 1, context_parallel_size: 1, expert_model_parallel_size: 1, "
      "expert_tensor_parallel_size: 1, data_parallel_size: 4}");
  EXPECT_EQ(scenario.parallelism.tp, 2);
  EXPECT_TRUE(scenario.parallelism.sp);
  EXPECT_EQ(scenario.parallelism.pp, 4);
  EXPECT_EQ(with_training("training: {seq_length: 512, micro_batch_size: 2, global_batch_size: 8}").training.micro_batch, 2);
}

TEST(Load, Order) {
  const Scenario scenario = with_parallelism("parallelism: {tp: 4, pp: 2, order: [pp, dp, ep, cp, tp]}");
  EXPECT_THAT(scenario.parallelism.order, testing::ElementsAre(Axis::pp, Axis::dp, Axis::ep, Axis::cp, Axis::tp));
}

TEST(Load, OneSlowGpuOrAList) {
  const Scenario one = from_line(5, "faults: {slow_gpu: {rank: 13, factor: 0.7}}");
  ASSERT_EQ(one.slow_gpus.size(), 1U);
  EXPECT_EQ(one.slow_gpus[0].rank, 13);
  EXPECT_DOUBLE_EQ(one.slow_gpus[0].factor, 0.7);
  EXPECT_EQ(from_line(5, "faults: {slow_gpu: [{rank: 1, factor: 0.7}, {rank: 2, factor: 0.5}]}").slow_gpus.size(), 2U);
}

TEST(Load, UnitsOfDevices) {
  const Device gpu = parse_scenario(base_text(), "s.yaml", {}).cluster.gpu;
  EXPECT_DOUBLE_EQ(gpu.memory_bandwidth, 3.35e12);                                           // H100 datasheet: 3.35 TB/s
  EXPECT_DOUBLE_EQ(gpu.peak[static_cast<std::size_t>(DType::bf16)], 989.4e12);               // 989.4 TFLOP/s dense
  EXPECT_EQ(gpu.memory, static_cast<Bytes>(std::llround(79.11 * (std::int64_t{1} << 30))));  // of 80 GiB
  EXPECT_EQ(gpu.peak[static_cast<std::size_t>(DType::i32)], 0);
}

TEST(Load, EveryReadyScenario) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    const Scenario scenario = load_scenario(entry.path().string(), {});
    EXPECT_EQ(scenario.name, entry.path().stem().string());
    if (scenario.parallelism.placement.is_packed()) {
      EXPECT_EQ(scenario.parallelism.world_size(), scenario.cluster.gpus);
    }
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST(Load, Llama405BOn16KGpus) {
  const Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/llama3-405b-16k.yaml", {});
  EXPECT_EQ(scenario.cluster.gpus, 16'384);
  EXPECT_EQ(scenario.parallelism.tp, 8);
  EXPECT_EQ(scenario.parallelism.pp, 16);
  EXPECT_EQ(scenario.parallelism.vpp, 8);
  EXPECT_EQ(scenario.parallelism.dp, 128);
  EXPECT_EQ(scenario.training.micro_batches(scenario.parallelism), 16);  // 2048 / (128 * 1)
}

}  // namespace
}  // namespace tandem::scenarios::load_test
