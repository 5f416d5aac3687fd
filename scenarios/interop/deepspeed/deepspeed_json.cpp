#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/interop/interop.h"
#include "scenarios/interop/scenario_sections.h"
#include "scenarios/interop/scenario_writers.h"
#include "scenarios/interop/usual_clusters.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {

ScenarioReader from_deepspeed;

namespace {

using Json = nlohmann::ordered_json;

Json configuration(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  Json json{{"train_batch_size", t.global_batch},
            {"train_micro_batch_size_per_gpu", t.micro_batch},
            {"gradient_accumulation_steps", t.micro_batches(p)}};
  Json zero{{"stage", p.zero}, {"overlap_comm", t.overlap_dp}, {"reduce_bucket_size", t.bucket_parameters}};
  if (p.zero == 3 && p.hsdp > 0) zero["mics_shard_size"] = p.hsdp;
  if (t.offload.optimizer > 0 && p.zero > 0)
    zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}, {"ratio", t.offload.optimizer}};
  json["zero_optimization"] = std::move(zero);
  json["bf16"] = {{"enabled", t.storage() == DType::bf16}};
  json["fp16"] = {{"enabled", t.storage() == DType::f16}};
  json["communication_data_type"] = name_of(t.grad_dtype);
  if (p.tp > 1) json["tensor_parallel"] = {{"autotp_size", p.tp}};
  if (p.cp > 1 && p.cp_method == CpMethod::ulysses) json["sequence_parallel_size"] = p.cp;
  return json;
}

/// The fields of a scenario by path, other mappings and lists as one text.
void flatten(const YamlNode& node, const std::string& path, std::map<std::string, std::string>& to) {
  constexpr std::array<std::string_view, 5> sections{"", "parallelism", "training", "training.overlap", "training.offload"};
  if (node.kind != YamlNode::Kind::mapping || std::ranges::find(sections, path) == sections.end()) {
    to[path] = to_yaml(node);
    return;
  }
  for (const YamlNode::Entry& entry : node.entries) flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, to);
}

std::string reason(const std::string& field) {
  if (field == "training.sequence") return "how long sequences are is up to the data";
  if (field.starts_with("training.recompute")) return "the model's code decides what is recomputed";
  if (field == "parallelism.pp" || field == "parallelism.vpp" || field == "training.schedule" ||
      field == "parallelism.pipeline_layout")
    return "pipelines are made by the model's code";
  if (field.starts_with("parallelism.cp")) return "it has Ulysses' sequence parallelism alone";
  if (field.starts_with("parallelism.e")) return "experts are dealt out by the model's code";
  if (field == "training.precision") return "weights are used in bf16, fp16 or fp32";
  return "DeepSpeed's configuration has no field for it";
}

/// What reading the configuration again gives of the scenario, with its model and its data: on a cluster that has all that may be
/// asked for. `framework`: another one than DeepSpeed's, where that has no such model; empty: DeepSpeed's.
Scenario read_again(const std::string& text, const Scenario& scenario, const std::string& framework) {
  Imported imported = from_deepspeed({.text = text, .file = "exported", .gpus = 0});
  YamlNode& document = imported.document;
  put(document, "model", *scenario_sections(scenario).find("model"));
  YamlNode& training = section_of(document, "training");
  put(training, "sequence", scenario.training.sequence);
  if (!framework.empty()) put(training, "framework", framework);
  YamlNode& cluster = section_of(document, "cluster");
  put(cluster, "preset", std::string(usual_cluster));
  YamlNode& host = section_of(cluster, "host");
  put(host, "link_GBps", std::int64_t{1});
  put(host, "memory_GBps", std::int64_t{1});
  tidy_names(document);
  resolve_presets(document, "");
  return read_document(document, scenario.name);
}

std::vector<Lost> lost_fields(const std::string& text, const Scenario& scenario) {
  std::map<std::string, std::string> before, after;
  flatten(scenario_sections(scenario), "", before);
  for (const std::string& framework : {std::string(), scenario.software.name}) {
    try {
      flatten(scenario_sections(read_again(text, scenario, framework)), "", after);
      if (!framework.empty())  // whose defaults are not those of DeepSpeed's
        for (const char* field : {"training.hidden_dropout", "training.attention_dropout"}) after.erase(field);
      break;
    } catch (const InputError&) {
      after.clear();  // what is left is no scenario, as where the model needs its pipeline: then all is lost
    }
  }
  std::vector<Lost> lost{{"model", "which model it is, its code says"}, {"training.sequence", reason("training.sequence")}};
  for (const auto& [field, value] : before) {
    if (field == "name" || field == "training.sequence" || field == "model") continue;
    if (field == "training.overlap.pp" && scenario.parallelism.pp == 1) continue;  // nothing is sent
    if (const auto found = after.find(field); found == after.end() || found->second != value)
      lost.push_back({field, reason(field)});
  }
  return lost;
}

}  // namespace

/// Writes a configuration of DeepSpeed. JSON has no comments: what it does not express stands under a key that DeepSpeed does not
/// ask for.
Exported deepspeed_json(const ScenarioWithDocument& read) {
  Json json = configuration(read.scenario);
  std::vector<Lost> lost = lost_fields(json.dump(2), read.scenario);
  for (const Lost& one : lost) json["_not_expressed"].push_back(one.field + ": " + one.why);
  return {.text = json.dump(2) + "\n", .lost = std::move(lost)};
}

}  // namespace tandem::scenarios
