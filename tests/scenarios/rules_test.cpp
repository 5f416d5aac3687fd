#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/checks/checks.h"
#include "scenarios/checks/complete.h"
#include "scenarios/checks/warnings.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::rules_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

/// A struct, and what is said of it: no YAML between the two.
struct Wrong {
  std::string name;
  std::function<void(Scenario&)> change;  ///< of the base scenario
  Objection objection;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.objection.sentence; }

Scenario base_scenario() { return parse_scenario(base_text(), "s.yaml", {}); }

void lay(Scenario& scenario, const std::string& layout) { scenario.parallelism.pipeline_layout = parse_pipeline_layout(layout); }

class Rules : public testing::TestWithParam<Wrong> {};

TEST_P(Rules, NameTheFieldsAndSayWhy) {
  Scenario scenario = base_scenario();
  GetParam().change(scenario);
  const auto objection = first_objection(scenario);
  ASSERT_TRUE(objection);
  EXPECT_THAT(objection->fields, testing::ElementsAreArray(GetParam().objection.fields));
  EXPECT_EQ(objection->sentence, GetParam().objection.sentence);
}

// One at least of each file of scenarios/checks, but for check_campaign.cpp. The base: 8 layers, 8 heads, 4 key-value heads, 32
// GPUs in nodes of 8, tp 4, pp 2, dp 4, sequences of 1024, 16 of them in a batch.
const Wrong wrong_scenarios[] = {
    {"Model",
     [](Scenario& s) { s.model.mla = {.kv_rank = 64, .rope_dim = 8, .nope_dim = 8, .v_dim = 8}; },
     {{"model.kv_heads", "model.heads", "model.mla"},
      "kv_heads 4 with latent attention, expected heads, 8: every head has a key of its own"}},
    {"HeadsWithoutAWidth",
     [](Scenario& s) { s.model.heads = 12, s.model.head_dim = 0; },
     {{"model.heads", "model.hidden"}, "heads 12 does not divide hidden 512, expected that or model.head_dim"}},
    {"Sharding",
     [](Scenario& s) { s.model.heads = 6, s.model.kv_heads = 6; },
     {{"parallelism.tp", "model.heads"}, "tp 4 does not divide 6 heads; nearest that do: 3, 6"}},
    {"SequenceOfTensorParallelRanks",
     [](Scenario& s) { s.training.sequence = 1022; },
     {{"training.sequence", "parallelism.tp"},
      "sequence 1022 is not a multiple of tp 4, which sp needs; nearest that are: 1020, 1024"}},
    {"World",
     [](Scenario& s) { s.parallelism.dp = 3; },
     {{"parallelism.dp", "cluster.gpus", "parallelism.tp", "parallelism.pp"},
      "tp 4 * pp 2 * cp 1 = 8 * dp 3 makes 24 ranks for 32 GPUs, expected dp 4"}},
    {"Cluster",
     [](Scenario& s) { s.cluster.nics_per_node = 3; },
     {{"cluster.nics_per_node", "cluster.gpus_per_node"}, "3 NICs cannot be shared evenly by 8 GPUs; nearest that can: 2, 4"}},
    {"PciePort",
     [](Scenario& s) {
       s.cluster.pcie.ports = {{"a", 32, {0}}, {"b", 32, {8}}};
     },
     {{"cluster.pcie.ports.1.gpus", "cluster.gpus_per_node"}, "a node has no GPU 8, expected 0 to 7"}},
    {"OtherGpus",
     [](Scenario& s) {
       s.cluster.other_gpus = {{.nodes = {{0, 1}, {1, 2}}, .gpu = s.cluster.gpu}};
     },
     {{"cluster.other_gpus.0.nodes"}, "node 1 stands in cluster.other_gpus twice, expected it once"}},
    {"Placement",
     [](Scenario& s) {
       s.parallelism.placement.kind = RankPlacement::Kind::listed;
       s.parallelism.placement.gpus.assign(32, 5);
     },
     {{"parallelism.placement.1"}, "GPU 5 is given to rank 0 and to rank 1, expected each GPU once"}},
    {"Fabric",
     [](Scenario& s) { s.cluster.link_faults = {{.where = LinkFault::Where::nic, .index = 32, .factor = 0.5}}; },
     {{"faults.slow_link.0", "faults.slow_link"}, "there is no NIC 32, expected 0 to 31"}},
    {"Faults",
     [](Scenario& s) {
       s.slow_gpus = {{1, 0.5}, {32, 0.5}};
     },
     {{"faults.slow_gpu.rank", "faults.slow_gpu.1.rank"}, "rank 32 does not exist, expected 0 to 31"}},
    {"Schedule",
     [](Scenario& s) { s.training.schedule = ScheduleKind::zero_bubble_v; },
     {{"training.schedule", "parallelism.vpp"}, "zb-v with vpp 1, expected vpp 2, the two arms of its V"}},
    {"ScheduleWithoutStages",
     [](Scenario& s) { s.training.schedule = ScheduleKind::dualpipe, s.parallelism.pp = 1, s.parallelism.dp = 8; },
     {{"training.schedule", "parallelism.pp"}, "dualpipe with pp 1, expected pp 2 or more, or schedule 1f1b"}},
    {"Layers",
     [](Scenario& s) { s.model.layers = 7; },
     {{"parallelism.pp", "parallelism.vpp", "model.layers", "parallelism.account_for_embedding", "parallelism.account_for_loss"},
      "7 layers do not divide over pp 2 * vpp 1 = 2 model chunks; account_for_loss would make them fit"}},
    {"LayoutBesideAnotherSplit",
     [](Scenario& s) { lay(s, "E|t*8,L"), s.parallelism.last_stage_layers = 2; },
     {{"parallelism.pipeline_layout", "parallelism.account_for_embedding", "parallelism.account_for_loss",
       "parallelism.first_stage_layers", "parallelism.last_stage_layers"},
      "pipeline_layout excludes account_for_embedding, account_for_loss, first_stage_layers and last_stage_layers, expected it "
      "without them"}},
    {"LayoutOfOtherStages",
     [](Scenario& s) { lay(s, "E|t*8|L"); },
     {{"parallelism.pipeline_layout", "parallelism.pp", "parallelism.vpp"},
      "pipeline_layout has 3 virtual stages, expected pp 2 * vpp 1 = 2"}},
    {"LayoutThatEmbedsLater",
     [](Scenario& s) { lay(s, "tE|t*7,L"); },
     {{"parallelism.pipeline_layout"},
      "pipeline_layout has a misplaced E, expected one E, the embedding, at the beginning of the first stage"}},
    {"LayoutThatEmbedsNowhere",
     [](Scenario& s) { lay(s, "|t*8,L"); },
     {{"parallelism.pipeline_layout"},
      "pipeline_layout has no E, expected one E, the embedding, at the beginning of the first stage"}},
    {"LayoutWithTwoLosses",
     [](Scenario& s) { lay(s, "EL|t*8,L"); },
     {{"parallelism.pipeline_layout"}, "pipeline_layout has 2 L, expected one L, the loss, at the end of the last stage"}},
    {"LayoutThatEndsInNothing",
     [](Scenario& s) { lay(s, "Et*8,L|"); },
     {{"parallelism.pipeline_layout"},
      "pipeline_layout has a misplaced L, expected one L, the loss, at the end of the last stage"}},
    {"LayoutOfOtherLayers",
     [](Scenario& s) { lay(s, "E|t*7,L"); },
     {{"parallelism.pipeline_layout", "model.layers"}, "pipeline_layout has 7 layers t, expected the model's 8"}},
    {"LayoutOfOtherMtpLayers",
     [](Scenario& s) { lay(s, "E|t*8,mL"); },
     {{"parallelism.pipeline_layout", "model.mtp_depth"},
      "pipeline_layout has 1 MTP layers m, expected the model's mtp_depth 0"}},
    {"LayoutThatScattersMtp",
     [](Scenario& s) { lay(s, "Et*8,m|mL"), s.model.mtp_depth = 2; },
     {{"parallelism.pipeline_layout"}, "pipeline_layout has MTP layers m in several stages, expected all in one"}},
    {"LayoutWithLayersBehindMtp",
     [](Scenario& s) { lay(s, "E|ttm,t*6,L"), s.model.mtp_depth = 1; },
     {{"parallelism.pipeline_layout"}, "pipeline_layout has a layer t after an MTP layer m, expected m after every t"}},
    {"LayoutWithMtpOnTheFirstStage",
     [](Scenario& s) { lay(s, "Et*8,m|L"), s.model.mtp_depth = 1; },
     {{"parallelism.pipeline_layout", "parallelism.pp", "parallelism.vpp"},
      "pipeline_layout has MTP layers m in virtual stage 1 of 2, expected one of the last 1: the last chunk of any pipeline "
      "stage "
      "but the first"}},
    {"LayoutWithMtpApartInAV",
     [](Scenario& s) {
       lay(s, "Et*8||m|L"), s.model.mtp_depth = 1;
       s.training.schedule = ScheduleKind::zero_bubble_v, s.parallelism.vpp = 2;
     },
     {{"parallelism.pipeline_layout", "parallelism.pp", "parallelism.vpp"},
      "pipeline_layout has MTP layers m in virtual stage 3 of 4, expected one of the last 1: the last chunk of any pipeline "
      "stage "
      "but the first"}},
    {"LayoutWithMtpApartInBothDirections",
     [](Scenario& s) {
       lay(s, "Et*8||m|L"), s.model.mtp_depth = 1;
       s.training.schedule = ScheduleKind::dualpipe, s.parallelism.pp = 4, s.parallelism.dp = 2;
     },
     {{"parallelism.pipeline_layout", "training.schedule"},
      "pipeline_layout has MTP layers m in another stage than the loss L, which dualpipe does not pass on, expected them in one "
      "stage or schedule 1f1b or interleaved-1f1b"}},
    {"Batch",
     [](Scenario& s) { s.training.global_batch = 18; },
     {{"training.global_batch", "training.micro_batch", "parallelism.dp", "cluster.gpus"},
      "global_batch 18 is not a multiple of dp 4 * micro_batch 1; nearest that are: 16, 20"}},
    {"BatchOfRounds",
     [](Scenario& s) {
       s.training.schedule = ScheduleKind::interleaved;
       s.parallelism.vpp = 2;
       s.training.global_batch = 12;
     },
     {{"training.global_batch", "training.micro_batch", "parallelism.dp", "cluster.gpus"},
      "global_batch 12 makes 3 micro-batches, not a multiple of pp, as interleaved-1f1b needs: of dp 4 * micro_batch 1 * pp 2; "
      "nearest that are: 8, 16"}},
    {"BatchOfBothEnds",
     [](Scenario& s) { s.training.schedule = ScheduleKind::dualpipe, s.training.global_batch = 8; },
     {{"training.global_batch", "training.micro_batch", "parallelism.dp", "parallelism.pp", "cluster.gpus"},
      "global_batch 8 makes 2 micro-batches, expected an even number of at least 2 * pp = 4, as dualpipe needs"}},
    {"DataParallel",
     [](Scenario& s) { s.parallelism.hsdp = 3; },
     {{"parallelism.hsdp", "parallelism.dp", "cluster.gpus"},
      "hsdp 3 does not divide the data-parallel group of 4; nearest that do: 2, 4"}},
    {"KeptWeights",
     [](Scenario& s) { s.parallelism.zero = 3, s.parallelism.reshard_after_forward = true; },
     {{"parallelism.reshard_after_forward", "parallelism.gather_per_micro_batch"},
      "reshard_after_forward true with gather_per_micro_batch false, which keeps weights for the whole step; expected at most "
      "one of the two"}},
    {"Experts",
     [](Scenario& s) { s.parallelism.ep = 2; },
     {{"parallelism.ep", "parallelism.etp"}, "ep 2, etp 1 for a model without experts; expected 1, or model.moe"}},
    {"ExpertRanks",
     [](Scenario& s) {
       s.model.moe = {.experts = 8, .top_k = 2, .ffn = 64, .load = {}};
       s.parallelism.ep = 3;
     },
     {{"parallelism.ep", "model.moe.experts"}, "ep 3 does not divide the 8 experts; nearest that do: 2, 4"}},
    {"AttentionOfUnknownSpeed",
     [](Scenario& s) {
       s.training.attention = AttentionKernel::cudnn;
       s.cluster.gpu.efficiency.attention = {};
     },
     {{"training.attention"}, "training.attention is cudnn, whose speed on h100-sxm-80gb is not known"}},
    {"Training",
     [](Scenario& s) { s.cluster.gpu.peak[static_cast<std::size_t>(DType::bf16)] = 0; },
     {{"training.precision", "cluster.gpu"},
      "h100-sxm-80gb has no bf16 arithmetic, expected a precision that stands in cluster.gpu.peak_TFLOPS"}},
};
INSTANTIATE_TEST_SUITE_P(Files, Rules, testing::ValuesIn(wrong_scenarios), [](const auto& test) { return test.param.name; });

TEST(RulesInOrder, TheFirstObjectionIsTheFirstOfAll) {
  Scenario scenario = base_scenario();
  EXPECT_FALSE(first_objection(scenario));
  EXPECT_THAT(objections(scenario), testing::IsEmpty());
  scenario.model.vocab = 4098;
  scenario.training.global_batch = 18;
  scenario.model.layers = 7;  // of the same subject as the batch, and before it
  scenario.slow_gpus = {{32, 0.5}};
  const auto says = [](const char* words) { return Field(&Objection::sentence, HasSubstr(words)); };
  EXPECT_THAT(objections(scenario), ElementsAre(says("vocab 4098"), says("rank 32"), says("7 layers")));
  EXPECT_EQ(first_objection(scenario)->sentence, objections(scenario).front().sentence);
  scenario.cluster.nics_per_node = 3;  // faults count on the cluster
  EXPECT_THAT(objections(scenario), ElementsAre(says("vocab 4098"), says("3 NICs"), says("7 layers")));
  scenario.parallelism.dp = 3;  // and all but the sharding on the mesh
  EXPECT_THAT(objections(scenario), ElementsAre(says("vocab 4098"), says("makes 24 ranks")));
}

TEST(RulesInOrder, WarningsNameTheirFields) {
  Scenario scenario = base_scenario();
  scenario.parallelism.zero = 3;
  EXPECT_THAT(unwise_in(scenario),
              ElementsAre(AllOf(Field(&Warning::rule, "small-shard-group"),
                                Field(&Warning::fields, ElementsAre("parallelism.zero", "parallelism.dp", "cluster.gpus")))));
}

TEST(CompleteScenarios, HaveBothSizesOfTheWorld) {
  Scenario scenario = base_scenario();
  scenario.cluster.gpus = 0;
  scenario.training.bucket_parameters = 0;
  complete(scenario);
  EXPECT_EQ(scenario.cluster.gpus, 32);
  EXPECT_EQ(scenario.training.bucket_parameters, 40'000'000);
  scenario.parallelism.dp = 0;
  complete(scenario);
  EXPECT_EQ(scenario.parallelism.dp, 4);
  scenario.cluster.gpus = 36;  // which is no whole number of replicas
  scenario.parallelism.dp = 0;
  complete(scenario);
  EXPECT_EQ(scenario.parallelism.dp, 0);
  EXPECT_TRUE(first_objection(scenario));
}

/// A scenario of the same sizes twice: as a struct that is filled in, and as options of the command line.
class Twice {
 public:
  explicit Twice(std::uint32_t seed) : random_(seed), scenario_(base_scenario()) { draw(); }

  const Scenario& scenario() const { return scenario_; }
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  std::mt19937 random_;  // without the library's distributions, which differ between platforms
  Scenario scenario_;
  std::vector<std::string> overrides_;

  std::size_t pick(std::size_t count) { return random_() % count; }

  template <typename T>
  void set(const std::string& path, T& field, std::vector<T> values) {
    field = values[pick(values.size())];
    overrides_.push_back(path + "=" + std::to_string(field));
  }
  void set_flag(const std::string& path, bool& field) {
    field = pick(3) == 0;
    overrides_.push_back(path + (field ? "=true" : "=false"));
  }
  template <typename T>
  void choose(const std::string& path, T& field, std::vector<std::pair<const char*, T>> values) {
    const auto& [name, value] = values[pick(values.size())];
    field = value;
    overrides_.push_back(path + "=" + name);
  }

  void draw() {
    Scenario& s = scenario_;
    ParallelismSpec& p = s.parallelism;
    using Size = std::int64_t;
    set<Size>("model.layers", s.model.layers, {7, 8, 8, 8, 12});
    set<Size>("model.heads", s.model.heads, {8, 8, 8, 12});
    set<Size>("model.kv_heads", s.model.kv_heads, {2, 4, 4, 8});
    s.model.head_dim = s.model.hidden % s.model.heads == 0 ? s.model.hidden / s.model.heads : 0;  // as it is read
    if (pick(8) != 0) set<Size>("model.head_dim", s.model.head_dim, {64, 64, 64, 63});
    set<Size>("cluster.gpus", s.cluster.gpus, {32, 32, 32, 64, 36});
    set<Size>("parallelism.tp", p.tp, {1, 2, 4, 4, 8, 3});
    set<Size>("parallelism.pp", p.pp, {1, 2, 2, 4});
    set<Size>("parallelism.cp", p.cp, {1, 1, 1, 2});
    p.dp = 0;
    overrides_.emplace_back("parallelism.dp=");
    if (pick(4) == 0) set<Size>("parallelism.dp", p.dp, {1, 2, 4, 8});
    set_flag("parallelism.sp", p.sp);
    draw_latent_attention();
    draw_experts();
    choose<ScheduleKind>("training.schedule", s.training.schedule,
                         {{"1f1b", ScheduleKind::one_f_one_b},
                          {"1f1b", ScheduleKind::one_f_one_b},
                          {"interleaved-1f1b", ScheduleKind::interleaved},
                          {"zb-v", ScheduleKind::zero_bubble_v},
                          {"dualpipe", ScheduleKind::dualpipe}});
    if (pick(2) == 0) set<Size>("parallelism.vpp", p.vpp, {1, 2, 4});
    set<Size>("training.global_batch", s.training.global_batch, {16, 32, 64, 64, 48});
    set<Size>("training.micro_batch", s.training.micro_batch, {1, 1, 1, 2});
    if (pick(4) == 0) set_flag("parallelism.account_for_loss", p.account_for_loss);
    if (pick(6) == 0) set<Size>("parallelism.first_stage_layers", p.first_stage_layers, {2, 3});
    if (pick(8) == 0) draw_layout();
    if (pick(6) == 0) set_flag("training.overlap.tp", s.training.overlap_tp);
    if (pick(6) == 0) set_flag("training.overlap.ep", s.training.overlap_ep);
    if (pick(6) == 0) set_flag("training.gates_at_experts", s.training.gates_at_experts);
    if (pick(6) == 0) set_flag("training.hierarchical_all_reduce", s.training.hierarchical_all_reduce);
    if (pick(6) == 0) set<Size>("parallelism.hsdp", p.hsdp, {2, 4});
    if (pick(6) == 0) set<int>("parallelism.zero", p.zero, {0, 2});
    if (pick(6) == 0) draw_gathered_weights();
    if (pick(6) == 0) draw_attention_kernel();
    if (pick(8) == 0) set<Size>("training.sync_every", s.training.sync_every, {2});
    complete(s);
  }

  void draw_layout() {
    const std::vector<std::string> texts{"Et*8L", "Etttt|ttttL", "E|t*8|L", "E||t*8|L", "Ett|tt|tt|ttL", "t*8|L"};
    const std::string& text = texts[pick(texts.size())];
    scenario_.parallelism.pipeline_layout = parse_pipeline_layout(text);
    overrides_.push_back("parallelism.pipeline_layout=" + text);
  }

  void draw_latent_attention() {
    ModelSpec& model = scenario_.model;
    if (pick(4) != 0) return;
    set<std::int64_t>("model.mla.kv_rank", model.mla.kv_rank, {0, 64, 64, 64});
    set<std::int64_t>("model.mla.rope_dim", model.mla.rope_dim, {8, 8, 8, 7});
    set<std::int64_t>("model.mla.nope_dim", model.mla.nope_dim, {8});
    set<std::int64_t>("model.mla.v_dim", model.mla.v_dim, {8});
    if (pick(4) != 0) set<std::int64_t>("model.kv_heads", model.kv_heads, {model.heads});
    if (pick(8) == 0) {
      set_flag("model.rotary", model.rotary);
      set<std::int64_t>("model.max_positions", model.max_positions, {512, 4096});
    }
    if (model.mla.enabled()) model.head_dim = model.mla.qk_dim();  // as it is read
  }

  void draw_gathered_weights() {
    set<int>("parallelism.zero", scenario_.parallelism.zero, {3});
    set_flag("parallelism.gather_per_micro_batch", scenario_.parallelism.gather_per_micro_batch);
    set_flag("parallelism.reshard_after_forward", scenario_.parallelism.reshard_after_forward);
  }

  void draw_attention_kernel() {
    if (pick(2) == 0) {  // a GPU on which the speed of cuDNN's attention is not known
      overrides_.emplace_back("cluster.gpu=a100-80gb");
      scenario_.cluster.gpu = parse_scenario(base_text(), "s.yaml", {overrides_.back()}).cluster.gpu;
    }
    choose<std::optional<AttentionKernel>>("training.attention", scenario_.training.attention,
                                           {{"cudnn", AttentionKernel::cudnn}, {"flash-2", AttentionKernel::flash_2}});
  }

  void draw_experts() {
    Scenario& s = scenario_;
    if (pick(2) == 0) {
      s.model.moe.ffn = s.model.ffn;
      set<std::int64_t>("model.moe.experts", s.model.moe.experts, {8, 16});
      set<std::int64_t>("model.moe.top_k", s.model.moe.top_k, {2, 4, 9});
    }
    if (pick(2) == 0) set<std::int64_t>("parallelism.ep", s.parallelism.ep, {1, 2, 4});
    if (pick(3) == 0) choose<bool>("parallelism.expert_axis", s.parallelism.own_expert_axis, {{"own", true}, {"folded", false}});
  }
};

TEST(RulesAndReader, AgreeOnRandomScenarios) {
  constexpr std::uint32_t draws = 1000;
  std::size_t accepted = 0;
  std::set<std::string> objections_met;
  for (std::uint32_t seed = 1; seed <= draws; ++seed) {
    const Twice twice(seed);
    const auto objection = first_objection(twice.scenario());
    std::string refusal;
    try {
      parse_scenario(base_text(), "s.yaml", twice.overrides());
      ++accepted;
    } catch (const InputError& error) {
      refusal = error.what();
    }
    ASSERT_EQ(objection.has_value(), !refusal.empty()) << seed << ": " << (objection ? objection->sentence : refusal);
    if (!objection) continue;
    ASSERT_THAT(refusal, testing::EndsWith(": " + objection->sentence)) << seed;
    objections_met.insert(objection->fields.front());
  }
  // Both happen often, and for many reasons.
  EXPECT_GT(accepted, draws / 50);
  EXPECT_GT(objections_met.size(), 8U);
}

}  // namespace
}  // namespace tandem::scenarios::rules_test
