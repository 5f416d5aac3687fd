// Latent attention under context parallelism: the sharded step is the unsharded one, folded or not; what travels are the latents,
// and every block of them is projected up where it is attended to.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::mla_context_test {
namespace {

const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 ";
const std::string all_gather = "parallelism.cp_method=all-gather ";
const std::string contiguous = "parallelism.cp_layout=contiguous ";
const std::string sp = "parallelism.tp=2 parallelism.sp=true ";

/// Method and layout, cp, the other axes, recompute.
using Combination = std::tuple<std::string, std::string, std::string, std::string>;
class MlaContext : public testing::TestWithParam<Combination> {
 protected:
  static std::string overrides() {
    const auto& [method, cp, mesh, recompute] = GetParam();
    return latent + method + cp + mesh + recompute + "training.global_batch=4";
  }
};

// As in equivalence_test: rounding alone differs.
TEST_P(MlaContext, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_cluster(words(overrides()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, MlaContext,
    testing::Combine(testing::Values("parallelism.cp_method=ring ", contiguous, all_gather, all_gather + contiguous),
                     testing::Values("parallelism.cp=2 ", "parallelism.cp=4 "),
                     testing::Values("model.layers=2 ", "model.layers=2 parallelism.tp=2 ", "model.layers=2 " + sp,
                                     "model.layers=2 parallelism.pp=2 parallelism.dp=2 " + sp),
                     testing::Values("", "training.recompute=[mla-up] ", "training.recompute=selective ")));

INSTANTIATE_TEST_SUITE_P(BesideOthers, MlaContext,
                         testing::Combine(testing::Values("parallelism.cp_method=ring ", contiguous, all_gather),
                                          testing::Values("parallelism.cp=2 "),
                                          testing::Values(sp + "parallelism.pp=2 training.schedule=zb-h1 ",
                                                          sp + "parallelism.pp=2 parallelism.vpp=2 training.schedule=zb-v ",
                                                          "parallelism.pp=2 parallelism.tp=2 training.schedule=dualpipe ",
                                                          sp + "parallelism.dp=2 parallelism.zero=3 training.bucket_MB=0.001 ",
                                                          sp + "parallelism.dp=2 parallelism.zero=0 training.micro_batch=2 "),
                                          testing::Values("training.recompute=full ", "training.recompute=[norm,mla-up] ",
                                                          "model.mla.q_rank=0 model.norm=layer ")));

// Which blocks a rank attends to, and so how often a weight that makes keys gets a gradient, is a matter of the layer's kind.
INSTANTIATE_TEST_SUITE_P(Windows, MlaContext,
                         testing::Combine(testing::Values("parallelism.cp_method=ring ", contiguous, all_gather),
                                          testing::Values("parallelism.cp=4 "),
                                          testing::Values("parallelism.pp=2 ", "parallelism.pp=2 parallelism.zero=3 ", sp),
                                          testing::Values("model.layer_types=[sliding_attention,full_attention] model.window=2 ",
                                                          "model.layer_types=[full_attention,sliding_attention] model.window=5 ")));

TEST(MlaContextFolding, TimesAreTheUnfoldedOnes) {
  for (const std::string& method : {std::string(), contiguous, all_gather, all_gather + contiguous}) {
    for (const std::string& mesh :
         {std::string("parallelism.cp=4 "),
          sp + "parallelism.cp=4 parallelism.pp=2 parallelism.dp=2 training.recompute=[mla-up] ",
          sp + "parallelism.cp=2 parallelism.pp=2 training.recompute=selective training.schedule=zb-h1 ",
          sp + "parallelism.cp=2 parallelism.pp=2 parallelism.dp=2 parallelism.order=[cp,pp,tp,dp,ep] cluster.gpus_per_node=4 "
               "cluster.nics_per_node=4 ",
          sp + "parallelism.cp=2 training.precision=fp8 "}) {
      SCOPED_TRACE(method + mesh);
      const std::size_t stages = mesh.find("pp=2") == std::string::npos ? 1 : 2;
      const std::size_t alike = method.find("contiguous") == std::string::npos ? 1
                                : mesh.find("cp=4") == std::string::npos       ? 2
                                                                               : 4;
      const std::size_t classes = expect_equal_when_folded(tiny_cluster(words(latent + method + mesh)));
      EXPECT_EQ(classes, stages * alike);
    }
  }
}

constexpr Bytes bf16 = 2;
constexpr std::int64_t sequence = 256;

/// One layer of DeepSeek-V3's attention (arXiv 2412.19437, section 4.2), or of one with as many heads of 128 that keeps them
/// whole.
const std::string deepseek = "mla: {q_rank: 1536, kv_rank: 512, rope_dim: 64, nope_dim: 128, v_dim: 128}";
const std::string full = "head_dim: 128";

Dag lowered(const std::string& attention, const std::string& overrides) {
  std::vector<std::string> list = words("training.global_batch=1 training.precision=bf16 training.sequence=256 " + overrides);
  list.insert(list.begin(),
              "model={layers: 1, hidden: 7168, heads: 128, kv_heads: 128, ffn: 18432, vocab: 96, " + attention + "}");
  const Scenario scenario = tiny_cluster(list);
  return lower(scenario, make_world(scenario, false));
}

TEST(MlaContextVolumes, AHopOfTheRingCarriesLatentsAndKeyParts) {
  // 2 bytes * b * s/cp * (kv_rank + rope_dim): cp - 1 hops forward, as many backward, and cp of the gradients. Heads do not
  // enter: each tensor-parallel rank passes on as much.
  for (const std::string& mesh : {std::string(), std::string("parallelism.tp=2 "), sp}) {
    for (const std::int64_t cp : {2, 4}) {
      const Bytes hop = bf16 * sequence / cp * (512 + 64);
      const Dag dag = lowered(deepseek, mesh + "parallelism.cp=" + std::to_string(cp));
      for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
        const auto volumes = volumes_of(dag, rank);
        for (const std::string end : {"send", "receive"}) {
          EXPECT_EQ(volumes.at(end + " cp forward"), (Volume{static_cast<std::size_t>(cp - 1), (cp - 1) * hop}));
          EXPECT_EQ(volumes.at(end + " cp backward-input"), (Volume{static_cast<std::size_t>(2 * cp - 1), (2 * cp - 1) * hop}));
          EXPECT_EQ(volumes.count(end + " cp recompute"), 0U);
        }
      }
    }
  }
}

TEST(MlaContextVolumes, LatentsAreASixtyFourthOfKeysAndValues) {
  // Whole, a token has 2 * 128 heads * 128 = 32,768 numbers of keys and values; its latent has 512, and 32,768 / 512 = 64. The
  // rotary part, which all heads share, comes on top: 64 numbers beside the 512.
  const auto sent = [](const std::string& attention) {
    return volumes_of(lowered(attention, "parallelism.cp=4"), 0).at("send cp forward").bytes;
  };
  const Bytes with_rope = sent(deepseek);
  const Bytes latents = with_rope - 3 * bf16 * sequence / 4 * 64;
  EXPECT_EQ(sent(full), 64 * latents);
  EXPECT_EQ(with_rope, latents / 512 * (512 + 64));
}

TEST(MlaContextVolumes, GatheringCollectsLatentsAndKeyParts) {
  const auto volumes = volumes_of(lowered(deepseek, sp + all_gather + "parallelism.cp=4"), 0);
  const Volume all{1, bf16 * sequence * (512 + 64)};
  EXPECT_EQ(volumes.at("all_gather cp forward"), all);
  EXPECT_EQ(volumes.at("all_gather cp backward-input"), all);
  EXPECT_EQ(volumes.at("reduce_scatter cp backward-input"), all);
}

TEST(MlaContextVolumes, GradientsAreSummedOverTensorParallelRanksOnce) {
  // Not per hop: as many collectives over tp as without context parallelism, each of 1 / cp of the tokens.
  for (const std::string& tp : {std::string("parallelism.tp=2 "), sp}) {
    const auto whole = volumes_of(lowered(deepseek, tp), 0);
    const auto parts = volumes_of(lowered(deepseek, tp + "parallelism.cp=4"), 0);
    for (const auto& [what, volume] : whole) {
      if (what.find(" tp backward-input") == std::string::npos || !what.starts_with(tp == sp ? "reduce_scatter" : "all_reduce"))
        continue;
      EXPECT_EQ(parts.at(what), (Volume{volume.count, volume.bytes / 4})) << what;
    }
  }
}

/// FLOPs of the projections of latents up, by phase.
std::map<Phase, Flops> projecting_up(const Dag& dag, RankIndex rank) {
  std::map<Phase, Flops> flops;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank == rank && task.op == OpKind::gemm && dag.name_of_task(id) == "latent up")
      flops[task.phase] += cost_of(dag, id).flops;
  }
  return flops;
}

TEST(MlaContextCosts, ABlockIsProjectedUpWhereItIsAttendedTo) {
  // 2 s/cp * kv_rank * heads/tp * (nope + v) for each block that a rank sees, forward; for keys and values once more before the
  // backward, which takes as much for the gradient of the latents and for that of the weight. Of contiguous runs, rank r sees the
  // r + 1 first, of zigzag chunks a part of all; gathered, they are one block of cp times the length.
  constexpr std::int64_t cp = 4, tp = 2;
  constexpr std::int64_t tokens = sequence / cp, heads = 128 / tp;
  constexpr Flops block = 2.0 * tokens * 512 * heads * (128 + 128);
  for (const std::string& method : {std::string(), contiguous, all_gather, all_gather + contiguous}) {
    SCOPED_TRACE(method);
    const Dag dag = lowered(deepseek, sp + method + "parallelism.cp=4");
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const auto flops = projecting_up(dag, rank);
      const Flops expected = block * (method == contiguous ? dag.ranks[rank].cp + 1 : cp);
      for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward_input, Phase::backward_weight})
        EXPECT_EQ(flops.at(phase), expected) << name_of(phase);
    }
  }
}

}  // namespace
}  // namespace tandem::studies::mla_context_test
