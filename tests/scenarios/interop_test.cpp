// A scenario in another program's words, and back: the same in all that the program expresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/scenario_sections.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/yaml_mapping.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::interop_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Exported exported_to(std::string_view program, const Scenario& scenario) { return find_exporter(program)->write({scenario, {}}); }

void erase(YamlNode& document, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return document.erase(path);
  if (const YamlNode* inside = find_path(document, path.substr(0, dot)))
    const_cast<YamlNode*>(inside)->erase(path.substr(dot + 1));
}

/// The sections as text, without what was lost and what follows from it.
std::string remaining(const Scenario& scenario, const std::vector<Lost>& lost) {
  YamlNode document = scenario_sections(scenario);
  erase(document, "name");
  erase(document, "model.name");
  if (scenario.parallelism.pp == 1) erase(document, "training.overlap.pp");  // counts nothing
  for (const Lost& one : lost) {
    erase(document, one.field);
    if (one.field == "parallelism.zero")
      for (const char* field : {"reshard_after_forward", "gather_per_micro_batch", "prefetch", "gather_unit", "hsdp"})
        erase(document, std::string("parallelism.") + field);
    if (one.field == "parallelism.pp") erase(document, "training.overlap.pp");
    if (one.field == "training.grad_dtype") erase(document, "training.bucket_MB");  // the same number of parameters
    if (one.field == "model")  // stages of so many layers count nothing without it
      for (const char* field :
           {"vpp", "first_stage_layers", "last_stage_layers", "account_for_embedding", "account_for_loss", "pipeline_layout"})
        erase(document, std::string("parallelism.") + field);
  }
  return to_yaml(document);
}

/// An exporter and the importer of what it writes.
struct Pair {
  const Exporter* exporter;
  const Importer* importer;
  bool is_launcher = false;  ///< words of the launcher stand beside the program's
};

/// Ranks of what was read without being told how many there are.
std::int64_t ranks_of(const YamlNode& document) {
  std::int64_t ranks = 1;
  for (const char* axis : {"tp", "cp", "pp", "dp"})
    if (const YamlNode* node = find_path(document, std::string("parallelism.") + axis)) ranks *= std::stoll(node->text);
  return ranks;
}

/// Sinks and the like depend on the framework's attention, which no program's file says: where the program's own framework has
/// none for the model, the original's is taken.
Scenario read_back(YamlNode document, const Written& original, std::int64_t gpus) {
  try {
    return read_with(document, original, gpus);
  } catch (const InputError&) {
    put(section_of(document, "training"), "framework", original.scenario.software.name);
    return read_with(document, original, gpus);
  }
}

void expect_round_trip(const Written& original, const Pair& pair) {
  const Exported exported = pair.exporter->write({original.scenario, {}});
  SCOPED_TRACE(exported.text);
  const bool loses_ranks = std::ranges::find(exported.lost, "parallelism.pp", &Lost::field) != exported.lost.end() ||
                           pair.exporter->name == "deepspeed";
  // A placement may leave some of the cluster's GPUs to others.
  const std::int64_t world = loses_ranks ? 0 : original.scenario.parallelism.world_size();
  Imported imported = pair.importer->read({.text = exported.text, .file = "exported", .gpus = world});
  const std::int64_t gpus = loses_ranks ? ranks_of(imported.document) : world;
  if (imported.document.find("model") == nullptr) {
    const YamlNode sections = scenario_sections(original.scenario);
    put(imported.document, "model", *sections.find("model"));
    for (const char* field :
         {"vpp", "first_stage_layers", "last_stage_layers", "account_for_embedding", "account_for_loss", "pipeline_layout"}) {
      if (loses_ranks) continue;
      const YamlNode* stated = find_path(sections, std::string("parallelism.") + field);
      erase(imported.document, std::string("parallelism.") + field);
      if (stated != nullptr) put(section_of(imported.document, "parallelism"), field, *stated);
    }
  }
  if (std::ranges::find(exported.lost, "training.sequence", &Lost::field) != exported.lost.end())
    put(section_of(imported.document, "training"), "sequence", original.scenario.training.sequence);
  if (!pair.is_launcher) {
    EXPECT_THAT(imported.ignored, IsEmpty());
  }
  const Scenario back = read_back(imported.document, original, gpus);
  EXPECT_EQ(remaining(back, exported.lost), remaining(original.scenario, exported.lost));
  for (const Lost& lost : exported.lost) EXPECT_THAT(exported.text, HasSubstr(lost.field + ": " + lost.why));
}

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const Importer& importer : importers())
    if (const Exporter* exporter = find_exporter(importer.name)) all.push_back({exporter, &importer});
  all.push_back({find_exporter("torchtitan-0.2"), find_importer("torchtitan")});
  for (const char* launcher : {"torchrun", "slurm"}) all.push_back({find_exporter(launcher), find_importer("megatron"), true});
  return all;
}

std::vector<Written> shipped() {
  std::vector<Written> all;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios"))
    if (entry.path().extension() == ".yaml")
      all.push_back(written(read_text_file(entry.path().string(), "a scenario"), entry.path().string(), {}));
  return all;
}

TEST(Interop, ShippedScenariosThroughEachProgram) {
  for (const Written& one : shipped())
    for (const Pair& pair : pairs()) expect_round_trip(one, pair);
}

TEST(Interop, SectionsReadAsTheSameScenario) {
  for (const Written& one : shipped()) {
    Scenario shipped = one.scenario;
    shipped.training.cuda_graph = CudaGraph::none;  // which only a framework captures, and sections have none
    const Scenario back = read_with(scenario_sections(shipped), one, shipped.cluster.gpus);
    EXPECT_EQ(to_yaml(scenario_sections(back)), to_yaml(scenario_sections(shipped)));
  }
}

TEST(Interop, SectionsKeepPoliciesAgainstStragglers) {
  const Written one = written(
      "name: s\nmodel: llama3-8b\ncluster: {preset: dgx-h100, gpus: 16}\nparallelism: {tp: 2, zero: 0}\n"
      "training: {sequence: 4096, global_batch: 16, sync_steps: 50, sync: [{kind: backup, backups: 2, late: abandon},\n"
      "  {kind: stale, staleness: 3, servers: 2}, {kind: asynchronous}, {kind: synchronous}, {kind: local, every: 4}]}\n",
      "s.yaml", {});
  const Scenario back = read_with(scenario_sections(one.scenario), one, one.scenario.cluster.gpus);
  EXPECT_EQ(back.training.sync, one.scenario.training.sync);
  EXPECT_EQ(back.training.sync_steps, 50);
}

TEST(Interop, CompleteScenariosStandAlone) {
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    const YamlNode document = load_document(entry.path().string(), {});
    const YamlNode back = parse_yaml(scenario_yaml(document), "back");
    EXPECT_EQ(to_yaml(back), to_yaml(document));
    EXPECT_EQ(to_yaml(scenario_sections(read_document(back, "s"))), to_yaml(scenario_sections(read_document(document, "s"))));
  }
}

/// Options that change one thing each; those that no scenario admits together are passed over.
std::vector<std::string> random_options(std::mt19937& random) {
  const std::vector<std::vector<std::string>> choices{
      {"model=llama3-8b", "model={preset: deepseek-v3, layers: 64, moe: {first_dense_layers: 4, every: 2}}", "model=gpt3-175b",
       "model=qwen3-30b-a3b", "model=nemotron-h-8b", "model=nemotron-3-super", "model=qwen3-next-80b-a3b",
       "model={preset: mixtral-8x7b, rotary_base: 12345.5}",
       "model={preset: qwen3-30b-a3b, moe: {score_function: sigmoid, scaling_factor: 2.5, groups: 8, node_limit: 2}}",
       "model={preset: qwen3-30b-a3b, moe: {score_function: sigmoid, expert_bias: true, bias_update_rate: 0.002}}",
       "model={preset: mixtral-8x7b, moe: {pre_softmax: true, scaling_factor: 0.5}}", "model=glm-4.5"},
      {"parallelism.tp=1", "parallelism.tp=2", "parallelism.tp=8"},
      {"parallelism.sp=true", "parallelism.sp=false"},
      {"parallelism.pp=1", "parallelism.pp=2", "parallelism.pp=4"},
      {"training.schedule=1f1b", "training.schedule=gpipe", "training.schedule=zb-h1", "training.schedule=interleaved-1f1b"},
      {"parallelism.vpp=1", "parallelism.vpp=2", "parallelism.vpp=4"},
      {"parallelism.cp=1", "parallelism.cp=2", "parallelism.cp=4"},
      {"parallelism.cp_method=ring", "parallelism.cp_method=all-gather", "parallelism.cp_method=ulysses"},
      {"parallelism.ep=1", "parallelism.ep=2", "parallelism.ep=8"},
      {"parallelism.etp=1", "parallelism.etp=2"},
      {"parallelism.dispatcher=nccl", "parallelism.dispatcher=deepep", "parallelism.dispatcher=hybridep"},
      {"parallelism.zero=0", "parallelism.zero=1", "parallelism.zero=2", "parallelism.zero=3"},
      {"parallelism.hsdp=", "parallelism.hsdp=4"},
      {"parallelism.order=", "parallelism.order=[tp, cp, ep, pp, dp]", "parallelism.order=[cp, tp, ep, dp, pp]"},
      {"parallelism.account_for_embedding=false", "parallelism.account_for_embedding=true"},
      {"parallelism.account_for_loss=false", "parallelism.account_for_loss=true"},
      {"parallelism.first_stage_layers=", "parallelism.first_stage_layers=4"},
      {"parallelism.pipeline_layout=", "parallelism.pipeline_layout=Et*32L", "parallelism.pipeline_layout=Et*3|t*29L",
       "parallelism.pipeline_layout=E|(t*16|)*2L", "parallelism.pipeline_layout=Ett|(t*5|)*6L",
       "parallelism.pipeline_layout=Et*64mL", "parallelism.pipeline_layout=Et*60|t*4mL",
       "parallelism.pipeline_layout=E|t*64|m|L"},
      {"training.micro_batch=1", "training.micro_batch=2"},
      {"training.precision=bf16", "training.precision=fp16", "training.precision=fp8", "training.precision=fp4"},
      {"training.grad_dtype=fp32", "training.grad_dtype=bf16", "training.grad_dtype=fp16"},
      {"training.recompute=none", "training.recompute=selective", "training.recompute=full", "training.recompute=selective-op",
       "training.recompute=[norm, mlp, activation]"},
      {"training.recompute_every=", "training.recompute_every=2"},
      {"training.overlap={dp: true}", "training.overlap={dp: false, pp: false}", "training.overlap={tp: true}",
       "training.overlap={ep: true}"},
      {"training.recompute_segment=", "training.recompute_segment=2"},
      {"training.sync=", "training.sync={kind: asynchronous}",
       "training.sync=[{kind: backup, backups: 1, late: abandon}, {kind: stale, staleness: 3, servers: 2}]",
       "training.sync=[{kind: synchronous}, {kind: backup, backups: 1}, {kind: local, every: 4}]"},
      {"training.attention_dropout=", "training.attention_dropout=0.1"},
      {"training.hidden_dropout=0", "training.hidden_dropout=0.1"},
      {"model.linear_bias=false", "model.linear_bias=true"},
      {"model.causal=true", "model.causal=false"},
      {"model.attention_bias=", "model.attention_bias=qkv", "model.attention_bias=all"},
      {"model.logit_softcap=", "model.logit_softcap=30"},
      {"training.bucket_MB=", "training.bucket_MB=200"},
      {"training.optimizer=", "training.optimizer=muon", "training.optimizer=adafactor"},
      {"training.moment_dtype=", "training.moment_dtype=bf16", "training.moment_dtype=fp8"},
      {"training.second_moment_dtype=", "training.second_moment_dtype=fp16"},
      {"training.master_dtype=", "training.master_dtype=fp16"},
      {"training.fp8_recipe=", "training.fp8_recipe=current", "training.fp8_recipe=blockwise", "training.fp8_recipe=mxfp8"},
      {"training.tp_only_amax_red=", "training.tp_only_amax_red=true"},
      {"training.first_last_layers_bf16=", "training.first_last_layers_bf16=true"},
      {"training.framework=", "training.framework=megatron-core"},
      {"training.cuda_graph=", "training.cuda_graph=attention", "training.cuda_graph=full"},
      {"training.fp8_activation_input=", "training.fp8_activation_input=true"},
      {"training.fp8_param_gather=", "training.fp8_param_gather=true"},
      {"training.fp8_attention=", "training.fp8_attention=true"},
      {"training.fp8_output_proj=", "training.fp8_output_proj=true"},
      {"training.attention=", "training.attention=cudnn", "training.attention=flash-2", "training.attention=flash-3",
       "training.attention=unfused"},
      {"parallelism.expert_axis=folded", "parallelism.expert_axis=own"},
  };
  std::vector<std::string> options;
  for (const std::vector<std::string>& one : choices) {
    // Most stay as they are, or hardly any scenario would be one.
    const bool changed = &one == &choices.front() || std::uniform_int_distribution(0, 3)(random) == 0;
    options.push_back(changed ? one[std::uniform_int_distribution<std::size_t>(0, one.size() - 1)(random)] : one.front());
  }
  return options;
}

// Which random scenarios rarely have, as their pp and vpp must fit.
TEST(Interop, PipelineLayoutsThroughBoth) {
  const std::string base =
      "model: llama3-8b\ncluster: {preset: dgx-h100, gpus: 128}\ntraining: {sequence: 2048, global_batch: 512}\n";
  const std::vector<std::vector<std::string>> all{
      {"parallelism.pp=2", "parallelism.pipeline_layout=Et*3|t*29L"},
      {"parallelism.pp=4", "parallelism.pipeline_layout=E|(t*16|)*2L"},
      {"parallelism.pp=4", "parallelism.pipeline_layout=E|t*16||t*16L", "training.schedule=gpipe"},
      {"parallelism.pp=4", "parallelism.vpp=2", "training.schedule=interleaved-1f1b",
       "parallelism.pipeline_layout=Ett|(t*5|)*6L"},
      {"parallelism.pp=4", "parallelism.vpp=2", "training.schedule=zb-v", "parallelism.pipeline_layout=Ett|(t*5|)*6L"},
      {"parallelism.pp=4", "training.schedule=dualpipe", "parallelism.pipeline_layout=E|(t*16|)*2L"},
      {"parallelism.pp=4", "model=deepseek-v3", "parallelism.ep=32", "parallelism.pipeline_layout=Et*31|t*15||t*15mL"},
      {"parallelism.pp=4", "model=deepseek-v3", "parallelism.ep=32", "parallelism.pipeline_layout=Et*31|t*30|m|L"}};
  for (const std::vector<std::string>& options : all) {
    SCOPED_TRACE(testing::PrintToString(options));
    const Written original = written(base, "s.yaml", options);
    for (const Pair& pair : pairs()) expect_round_trip(original, pair);
    const bool has_counterpart = original.scenario.training.schedule != ScheduleKind::zero_bubble_v;
    EXPECT_EQ(exported_to("megatron", original.scenario).text.find("--pipeline-model-parallel-layout ") != std::string::npos,
              has_counterpart);
  }
}

TEST(Interop, RandomScenariosThroughBoth) {
  const std::string base =
      "model: llama3-8b\ncluster: {preset: dgx-h100, gpus: 128}\ntraining: {sequence: 2048, global_batch: 512}\n";
  std::mt19937 random(7);
  int valid = 0;
  std::set<std::string> lost_fields;
  for (int draw = 0; draw < 3000 && valid < 250; ++draw) {
    const std::vector<std::string> options = random_options(random);
    Written original;
    try {
      original = written(base, "s.yaml", options);
    } catch (const InputError&) {
      continue;
    }
    ++valid;
    SCOPED_TRACE(testing::PrintToString(options));
    for (const Pair& pair : pairs()) expect_round_trip(original, pair);
    for (const Lost& lost : exported_to("megatron", original.scenario).lost) lost_fields.insert(lost.field);
  }
  EXPECT_GE(valid, 100);
  EXPECT_GE(lost_fields.size(), 8);  // so that the draws reach what cannot be expressed
}

}  // namespace
}  // namespace tandem::scenarios::interop_test
