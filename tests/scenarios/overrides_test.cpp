#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::overrides_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Scenario with(const std::vector<std::string>& overrides) { return parse_scenario(base_text(), "s.yaml", overrides); }

std::string error_of(const std::vector<std::string>& overrides) {
  try {
    with(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Overrides, ReplaceOneField) {
  EXPECT_EQ(with({"training.sequence=2048"}).training.sequence, 2048);
  EXPECT_EQ(with({"name=other"}).name, "other");
}

TEST(Overrides, ApplyInTheOrderGiven) {
  EXPECT_EQ(with({"training.sequence=2048", "training.sequence=4096"}).training.sequence, 4096);
  EXPECT_EQ(with({"model.layers=4", "model=llama3-8b"}).model.layers, 32);
  EXPECT_EQ(with({"model=llama3-8b", "model.layers=4"}).model.layers, 4);
}

TEST(Overrides, MakeSectionsThatTheFileDoesNotHave) {
  EXPECT_EQ(with({"training.overlap.dp=false"}).training.overlap_dp, false);
  EXPECT_DOUBLE_EQ(with({"cluster.fabric.oversubscription=[1, 1, 7]"}).cluster.fabric.oversubscription[2], 7);
}

TEST(Overrides, AnEmptyValueTakesTheFieldAway) {
  const Scenario scenario = with({"parallelism.dp=", "cluster.gpus=64"});
  EXPECT_EQ(scenario.parallelism.dp, 8);  // 64 / (tp 4 * pp 2)
}

TEST(Overrides, ReachIntoPresets) {
  EXPECT_DOUBLE_EQ(with({"cluster.gpu.efficiency.gemm.bf16=0.5"}).cluster.gpu.efficiency.gemm[1].rate, 0.5);
  EXPECT_EQ(with({"cluster.gpu=a100-40gb"}).cluster.gpu.name, "a100-40gb");
  EXPECT_DOUBLE_EQ(with({"cluster.preset=dgx-a100"}).cluster.nic_gbps, 200);
}

TEST(Overrides, UnderstandLongNames) {
  const Scenario scenario =
      with({"parallelism.tensor_model_parallel_size=2", "parallelism.data_parallel_size=8", "training.seq_length=512"});
  EXPECT_EQ(scenario.parallelism.tp, 2);
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.training.sequence, 512);
}

TEST(Overrides, ErrorsNameTheOption) {
  EXPECT_EQ(error_of({"parallelism.tp=7"}), "--set parallelism.tp=7: tp 7 does not divide 8 heads; nearest that do: 4, 8");
  EXPECT_THAT(error_of({"paralelism.tp=2"}), StartsWith("--set paralelism.tp=2: the scenario has no field `paralelism`"));
  EXPECT_THAT(error_of({"parallelism.pp=4"}), StartsWith("--set parallelism.pp=4: tp 4 * pp 4"));
  EXPECT_THAT(error_of({"model.heads=12"}), HasSubstr("--set model.heads=12: "));
  EXPECT_THAT(error_of({"parallelism.tp=[1"}), StartsWith("--set parallelism.tp=[1: wrong YAML: "));
  EXPECT_THAT(error_of({"parallelism.tp.deeper=1"}), HasSubstr("parallelism.tp is a mapping"));
  EXPECT_EQ(
      error_of({"faults.slow_gpu={rank:5, factor: 0.7}"}),
      "--set faults.slow_gpu={rank:5, factor: 0.7}: faults.slow_gpu has no field `rank:5`, expected a space after the colon");
}

TEST(Overrides, ConflictsPointAtWhatTheOptionChanged) {
  EXPECT_EQ(error_of({"model.ffn=1022"}), "--set model.ffn=1022: tp 4 does not divide 1022 ffn; nearest that do: 2, 7");
  EXPECT_THAT(error_of({"model.layers=9"}), HasSubstr("model.layers=9: 9 layers do not divide over pp 2 * vpp 1 = 2"));
  EXPECT_THAT(error_of({"model.layers=9"}), HasSubstr("account_for_loss would make them fit"));
  EXPECT_THAT(error_of({"training.schedule=dualpipe", "parallelism.vpp=2"}), HasSubstr("dualpipe with vpp 2, expected vpp 1"));
  EXPECT_THAT(error_of({"parallelism.vpp=2", "training.schedule=interleaved-1f1b", "training.global_batch=12"}),
              HasSubstr("global_batch=12: global_batch 12 makes 3 micro-batches, not a multiple of pp"));
  EXPECT_THAT(error_of({"parallelism.vpp=2", "training.schedule=interleaved-1f1b", "parallelism.pp=1", "parallelism.dp=8"}),
              HasSubstr("interleaved-1f1b with pp 1"));
  EXPECT_THAT(error_of({"model.rotary=false", "model.max_positions=512"}),
              StartsWith("--set model.max_positions=512: sequence 1024 is longer than the 512 learned positions"));
  EXPECT_THAT(error_of({"cluster.gpus=", "parallelism.dp="}), HasSubstr("are both missing"));
  EXPECT_THAT(error_of({"parallelism.pp=1048576"}), HasSubstr("is more than 1,048,576 GPUs"));
  EXPECT_THAT(error_of({"cluster.gpus=", "parallelism.dp=1048576"}), HasSubstr("is more than 1,048,576 GPUs"));
}

TEST(Overrides, SayWhatAnOptionLooksLike) {
  for (const char* option : {"", "foo", "=4", ".=4", "a..b=4", "a.b.=4", "a.b.c.d.e.f.g.h.i=4"})
    EXPECT_THAT(error_of({option}), HasSubstr("expected --set path=value")) << option;
}

TEST(Overrides, AFieldMissingAfterAnOptionIsMissingInTheFile) {
  EXPECT_THAT(error_of({"training.sequence=", "training.micro_batch=2"}),
              StartsWith("s.yaml:5:11: training.sequence is missing"));
}

}  // namespace
}  // namespace tandem::scenarios::overrides_test
