#include "studies/step/step_dump.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/backend_names.h"
#include "runtime/base/input_error.h"
#include "runtime/contents/initial_contents.h"
#include "runtime/contents/parameter_name.h"
#include "runtime/host/loss.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/names.h"
#include "studies/step/verification.h"
#include "traces/output_file.h"
#include "traces/safetensors.h"
#include "traces/tidied_name.h"

namespace tandem::studies {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// How far ranks may be apart that hold the same parameter: they add the same numbers up, some in another order.
constexpr double same = 1e-5;

[[noreturn]] void fail(const std::string& folder, const std::string& reason) {
  throw std::runtime_error("cannot write '" + folder + "': " + reason);
}
void expect_done(const std::string& folder, const std::error_code& error) {
  if (error) fail(folder, error.message());
}

fs::path without_slash(const std::string& folder) {
  const fs::path path(folder);
  return path.has_filename() ? path : path.parent_path();
}

/// A folder beside that of the dump, which takes its place when it is whole; removed with all in it unless that happened.
class FolderBeside {
 public:
  explicit FolderBeside(std::string folder) : folder_(std::move(folder)) {
    const fs::path target = without_slash(folder_);
    std::error_code error;
    const fs::file_status there = fs::status(target, error);
    if (fs::exists(there)) {
      if (!fs::is_directory(there)) expect_done(folder_, std::make_error_code(std::errc::not_a_directory));
      const bool is_empty = fs::is_empty(target, error);
      expect_done(folder_, error);
      if (!is_empty) fail(folder_, "it holds something; expected a new folder, or an empty one");
    }
    const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
    path_ = TidiedName(parent / (".tandem-" + std::to_string(::getpid())));
    fs::create_directory(path_.path(), error);
    expect_done(folder_, error);
  }

  void write(const std::string& name, const std::string& bytes) {
    files_.emplace_back(fs::path(path_.path()) / name);
    OutputFile file(files_.back().path(), fs::path(folder_) / name);
    file.write(bytes);
    file.commit();
  }
  void take_place() {
    std::error_code error;
    fs::rename(path_.path(), without_slash(folder_), error);
    expect_done(folder_, error);
    for (TidiedName& file : files_) file.keep();
    path_.keep();
  }

 private:
  std::string folder_;
  TidiedName path_;
  std::vector<TidiedName> files_;  ///< before the folder, which has to be empty to go
};

NamedTensor named(const std::string& name, const UnshardedTensor& tensor, const std::string& suffix = "") {
  const auto elements = static_cast<std::int64_t>(tensor.values.size());
  return {name + suffix, is_vector(name) ? std::vector{elements} : std::vector{tensor.rows, tensor.columns},
          std::span(tensor.values)};
}

std::vector<NamedTensor> all_of(const UnshardedTensors& tensors, const std::string& suffix = "") {
  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back(named(name, tensor, suffix));
  return all;
}

std::string moments_file(const UnshardedState& state) {
  std::vector<NamedTensor> all = all_of(state.momenta, ".momentum");
  for (NamedTensor& tensor : all_of(state.variances, ".variance")) all.push_back(std::move(tensor));
  return to_safetensors(all);
}

std::string tokens_file(const UnshardedTokens& tokens) {
  const std::vector shape{tokens.sequences, tokens.length};
  return to_safetensors({{"inputs", shape, std::span(tokens.inputs)}, {"labels", shape, std::span(tokens.labels)}});
}

std::string patches_file(const UnshardedPatches& patches) {
  std::vector<float> all;
  for (const auto& [sequence, pixels] : patches.of_sequence) all.insert(all.end(), pixels.begin(), pixels.end());
  const std::vector shape{static_cast<std::int64_t>(patches.of_sequence.size()), patches.positions, patches.width};
  return to_safetensors({{"patches", shape, std::span<const float>(all)}});
}

/// The value of a section as a writer of scenarios leaves it: numbers and truth values as such.
Json json_of(const YamlNode& node) {
  Json json;
  switch (node.kind) {
    case YamlNode::Kind::mapping:
      json = Json::object();
      for (const YamlNode::Entry& entry : node.entries) json[entry.key] = json_of(entry.value);
      return json;
    case YamlNode::Kind::sequence:
      json = Json::array();
      for (const YamlNode& item : node.items) json.push_back(json_of(item));
      return json;
    case YamlNode::Kind::null:
      return json;
    case YamlNode::Kind::scalar:
      break;
  }
  const Json parsed = Json::parse(node.text, nullptr, false);
  return !node.quoted && parsed.is_primitive() && !parsed.is_discarded() ? parsed : Json(node.text);
}

/// How the unsharded model routes a micro-batch.
Json routing_json(const Scenario& scenario) {
  const RoutingAttributes routing = routing_of(unsharded(scenario));
  return {{"token_groups", routing.groups},
          {"zigzag", routing.zigzag},
          {"nodes", routing.nodes},
          {"node_limit", routing.node_limit},
          {"best_of_node", routing.best_of_node},
          {"forced", routing.forced},
          {"slots", routing.slots},
          {"load", routing.forced_load()},
          {"expert_choice", routing.expert_choice},
          {"balance", routing.balance},
          {"sequences", routing.sequences},
          {"score_function", name_in(score_function_names, routing.score)},
          {"pre_softmax", routing.pre_softmax},
          {"scaling_factor", routing.scaling},
          {"bias_update_rate", scenario.model.moe.bias_update_rate}};
}

/// The attributes of an operation of the optimizer, which all of its tasks have alike, but for Muon's `scale`.
template <typename Attributes>
const Attributes& settings_of(const Dag& dag, OpKind op) {
  const auto found = std::ranges::find(dag.tasks, op, &Task::op);
  if (found == dag.tasks.end()) throw std::logic_error("the step has no " + std::string(operation(op).name));
  return std::get<Attributes>(dag.attributes[found->attributes]);
}

Json adafactor_json(const Dag& dag) {
  const auto& adafactor = settings_of<AdafactorAttributes>(dag, OpKind::adafactor_update);
  return {{"name", name_in(optimizer_names, OptimizerKind::adafactor)},
          {"learning_rate", adafactor.learning_rate},
          {"beta2_decay", adafactor.beta2_decay},
          {"least_scale", adafactor.least_scale},
          {"threshold", adafactor.threshold},
          {"weight_decay", adafactor.weight_decay},
          {"clip_norm", adafactor.clip_norm},
          {"step", adafactor.step},
          {"factors", initial_factor}};
}

Json optimizer_json(const Dag& dag, OptimizerKind kind) {
  if (kind == OptimizerKind::adafactor) return adafactor_json(dag);
  const auto& adam = settings_of<AdamAttributes>(dag, OpKind::adam);
  Json json = {{"name", name_in(optimizer_names, kind)},
               {"learning_rate", adam.learning_rate},
               {"beta1", adam.beta1},
               {"beta2", adam.beta2},
               {"epsilon", adam.epsilon},
               {"weight_decay", adam.weight_decay},
               {"clip_norm", adam.clip_norm},
               {"step", adam.step}};
  if (kind == OptimizerKind::adam) return json;
  const auto& muon = settings_of<MuonAttributes>(dag, OpKind::muon_update);
  json["muon"] = {{"learning_rate", muon.learning_rate}, {"momentum", muon.momentum}, {"weight_decay", muon.weight_decay}};
  return json;
}

Json step_json(const ExecutedStep& step, const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  Json json = {
      {"scenario", scenario.name},
      {"ranks", step.dag().ranks.size()},
      {"loss", mean_loss(step.memory())},
      {"model", json_of(write_model(scenario.model))},
      {"batch",
       {{"sequence", training.sequence}, {"micro_batch", training.micro_batch}, {"global_batch", training.global_batch}}},
      {"hidden_dropout", training.hidden_dropout},
      {"attention_dropout", training.attention_dropout},
      {"optimizer", optimizer_json(step.dag(), training.optimizer)}};
  if (scenario.model.moe.experts > 0) json["routing"] = routing_json(scenario);
  return json;
}

}  // namespace

StepDump::StepDump(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, std::string folder)
    : folder_(std::move(folder)) {
  if (backend.backend != host_backend)
    throw InputError({file, 0, 0}, "--dump writes what the host computes in fp32; expected --backend host");
  if (scenario.training.local_steps()) {
    throw InputError({file, 0, 0},
                     "--dump writes one step that all ranks take together, and training.sync_every lets replicas take " +
                         std::to_string(scenario.training.sync_every) + " by themselves; expected training.sync_every 1");
  }
  const FolderBeside probe(folder_);
}

void StepDump::write(const ExecutedStep& step, const Scenario& scenario) const {
  const UnshardedState after = gather_unsharded(step.memory());
  if (!(after.disagreement < same)) throw std::runtime_error("ranks that hold the same parameter do not agree on it");
  FolderBeside folder(folder_);
  folder.write("weights.safetensors", to_safetensors(all_of(before_.weights)));
  folder.write("optimizer.safetensors", moments_file(before_));
  folder.write("tokens.safetensors", tokens_file(gather_tokens(step.memory())));
  if (scenario.model.encoder.enabled()) folder.write("patches.safetensors", patches_file(gather_patches(step.memory())));
  folder.write("gradients.safetensors", to_safetensors(all_of(after.gradients)));
  folder.write("updated.safetensors", to_safetensors(all_of(after.weights)));
  folder.write("step.json", step_json(step, scenario).dump(2) + "\n");
  folder.take_place();
}

}  // namespace tandem::studies
