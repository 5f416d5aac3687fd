// Pipelines whose virtual stages hold what a layout says.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/dag/dag.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "traces/dag_file.h"

namespace tandem::studies::pipeline_layout_test {
namespace {

const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 ";
const std::string streams = "model.hyper_connections.streams=3 model.hyper_connections.iterations=5 ";
const std::string interleaved = "training.schedule=interleaved-1f1b parallelism.vpp=2 ";
const std::string zb_v = "training.schedule=zb-v parallelism.vpp=2 ";

std::string layout(const std::string& text) { return "parallelism.pipeline_layout=\"" + text + "\" "; }

class PipelineLayouts : public testing::TestWithParam<std::string> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(PipelineLayouts, AreTheUnshardedStep) {
  const Scenario scenario = tiny_model(words(GetParam()));
  EXPECT_LT(largest_difference(scenario), scenario.model.hyper.enabled() ? 3e-5 : 1e-5);
}

TEST_P(PipelineLayouts, HaveFoldedTheTimesOfTheUnfolded) {
  EXPECT_GE(expect_equal_when_folded(tiny_cluster(words(GetParam()))), 1U);
}

/// On one GPU a stage, so that nothing is padded or held twice but the token table.
TEST_P(PipelineLayouts, HoldTheModelsParameters) {
  const Scenario scenario = tiny_model(words(GetParam() + " parallelism.dp=1 parallelism.tp=1 parallelism.sp=false " +
                                             "parallelism.cp=1 parallelism.ep=1 parallelism.zero=0"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::int64_t held = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.kind == BufferKind::parameter && buffer.base == id) held += buffer.shape.elements();
  }
  const auto copies = static_cast<std::int64_t>(parts_with_token_table(scenario).size()) - 1;
  const std::int64_t of_model = parameter_count(scenario.model) + copies * scenario.model.vocab * scenario.model.hidden;
  EXPECT_EQ(held, of_model * (scenario.training.schedule == ScheduleKind::dualpipe ? 2 : 1));
}

INSTANTIATE_TEST_SUITE_P(
    OneChunk, PipelineLayouts,
    testing::Values(layout("E|ttt|t|L") + "parallelism.pp=4", layout("Etttt|||L") + "parallelism.pp=4 parallelism.dp=2",
                    layout("E|||ttttL") + "parallelism.pp=4 parallelism.tp=2 parallelism.sp=true training.overlap.pp=false",
                    layout("E||tttt|L") + "parallelism.pp=4 parallelism.tp=2 parallelism.scatter_gather=true",
                    layout("Et||ttt|L") + "parallelism.pp=4 parallelism.dp=2 parallelism.zero=3 model.tied_embeddings=true",
                    layout("E|tt|tt|L") + "parallelism.pp=4 training.recompute=full training.recompute_segment=2",
                    layout("E|tttt||L") + "training.schedule=zb-h1 parallelism.pp=4 parallelism.zero=2 parallelism.dp=2",
                    layout("Et|tttL") + "parallelism.pp=2 model.norm=layer"));

INSTANTIATE_TEST_SUITE_P(
    SeveralChunks, PipelineLayouts,
    testing::Values(layout("Et|tt||tL") + interleaved + "parallelism.pp=2",
                    layout("E|t||tt||t||L") + interleaved + "parallelism.pp=4 training.overlap.pp=false",
                    layout("E|tttt||L") + interleaved + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=3",
                    layout("Ettt|||tL") + zb_v + "parallelism.pp=2 model.tied_embeddings=true",
                    layout("E||tttt|L") + zb_v + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    layout("E|tttt||L") + "training.schedule=dualpipe parallelism.pp=4",
                    layout("Et||ttt|mL") + "training.schedule=dualpipe parallelism.pp=4 model.mtp_depth=1",
                    layout("E|t||tttL") + interleaved + experts +
                        "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2 parallelism.zero=1 training.overlap.ep=true"));

// Predictions of further tokens beside the loss, on a stage before it, and with stages between that pass all states on.
INSTANTIATE_TEST_SUITE_P(
    FurtherTokens, PipelineLayouts,
    testing::Values(layout("Et|ttt||mL") + "parallelism.pp=4 model.mtp_depth=1",
                    layout("Et|tt|tm|L") + "parallelism.pp=4 model.mtp_depth=1",
                    layout("E|ttttmm||L") + "parallelism.pp=4 model.mtp_depth=2 training.overlap.pp=false",
                    layout("Etttt|m|L") + "parallelism.pp=3 model.mtp_depth=1 model.tied_embeddings=true parallelism.dp=2 "
                                          "training.global_batch=8",
                    layout("Ett|tt|mm|L") + "parallelism.pp=4 parallelism.tp=2 parallelism.sp=true model.mtp_depth=2",
                    layout("Ett|tt|m|L") + "parallelism.pp=4 parallelism.tp=2 parallelism.scatter_gather=true model.mtp_depth=1",
                    layout("Ett|tt|mm|L") + "parallelism.pp=4 parallelism.cp=2 model.mtp_depth=2 model.tied_embeddings=true",
                    layout("Ett|tt|mm|L") + "parallelism.pp=4 parallelism.dp=2 parallelism.zero=3 model.mtp_depth=2 "
                                            "training.recompute=full",
                    layout("E|tt|tm|L") + "parallelism.pp=4 model.layers=3 training.schedule=zb-h1 model.mtp_depth=1",
                    layout("Ett|tt|mm|L") + streams + "parallelism.pp=4 parallelism.tp=2 parallelism.sp=true model.mtp_depth=2",
                    layout("Etttt|m||L") + streams + "parallelism.pp=4 parallelism.dp=2 parallelism.zero=3 model.mtp_depth=1",
                    layout("E|t||t||tt,m||L") + interleaved + "parallelism.pp=4 model.mtp_depth=1 training.overlap.pp=false",
                    layout("E|t|tt|t|||m|L") + interleaved + "parallelism.pp=4 model.mtp_depth=1",
                    layout("E|tt|tt|t|m|L") + interleaved + experts +
                        "parallelism.pp=3 parallelism.dp=2 parallelism.ep=2 parallelism.zero=1 model.mtp_depth=1 model.layers=5 "
                        "training.overlap.ep=true training.global_batch=12"));

/// A split that fields make, written out: the same step to the last byte.
TEST(PipelineLayout, OfAnEvenSplitIsThatSplit) {
  const std::map<std::string, std::string> written{
      {"parallelism.pp=2", "Ett|ttL"},
      {"parallelism.pp=4 parallelism.dp=2 parallelism.zero=3", "Et|t|t|tL"},
      {interleaved + "parallelism.pp=2 model.mtp_depth=1 model.tied_embeddings=true", "Et|t|t|tmL"},
      {zb_v + "parallelism.pp=2", "Et|t|t|tL"},
      {"training.schedule=dualpipe parallelism.pp=2", "Ett|ttL"},
      {"parallelism.pp=4 model.layers=7 parallelism.first_stage_layers=1 parallelism.last_stage_layers=2", "Et|tt|tt|ttL"},
      {"parallelism.pp=3 parallelism.account_for_embedding=true parallelism.account_for_loss=true", "Et|tt|tL"}};
  for (const auto& [fields, text] : written) {
    SCOPED_TRACE(fields);
    const Scenario plain = tiny_cluster(words(fields));
    Scenario laid = plain;
    ParallelismSpec& p = laid.parallelism;
    p.pipeline_layout = parse_pipeline_layout(text);
    p.account_for_embedding = p.account_for_loss = false;
    p.first_stage_layers = p.last_stage_layers = 0;
    for (const bool folded : {true, false})
      EXPECT_EQ(traces::to_bytes(lower(laid, make_world(laid, folded))),
                traces::to_bytes(lower(plain, make_world(plain, folded))));
  }
}

}  // namespace
}  // namespace tandem::studies::pipeline_layout_test
