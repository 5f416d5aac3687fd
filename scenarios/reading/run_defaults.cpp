#include "scenarios/reading/run_defaults.h"

#include <utility>

#include "runtime/base/nearest.h"
#include "runtime/dag/software.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t highest_zero = 3;

const YamlNode& list_at(const Reader& runs, std::string_view key) {
  const YamlNode& list = runs.child(key);
  if (list.kind != YamlNode::Kind::sequence)
    runs.fail(key, runs.full_name(key) + " is " + describe(list) + ", expected a list, the likeliest first");
  return list;
}

std::vector<bool> read_flags(const Reader& runs, std::string_view key) {
  std::vector<bool> flags;
  for (const YamlNode& item : list_at(runs, key).items) flags.push_back(boolean_of(item, runs.full_name(key)));
  return flags;
}

std::vector<std::string> read_recompute(const Reader& runs, std::string_view key) {
  std::vector<Choice<std::string>> usual;
  for (const std::string_view name : usual_recomputes) usual.push_back({name, std::string(name)});
  std::vector<std::string> kinds;
  for (const YamlNode& item : list_at(runs, key).items) kinds.push_back(runs.choice_of<std::string>(item, key, usual));
  return kinds;
}

}  // namespace

std::optional<FrameworkRuns> read_framework_runs(const YamlNode& framework) {
  const YamlNode* stated = framework.find("runs");
  if (stated == nullptr) return {};
  const Reader reader(*stated, "runs",
                      {"zero", "sp", "recompute", "recompute_to_fit", "selective", "interleaves", "always_interleaves",
                       "experts_split_like_tp", "low_precision_grad_dtype", "rack_dispatcher"});
  FrameworkRuns runs;
  list_at(reader, "zero");
  runs.zero = reader.integers("zero", {0, highest_zero});
  runs.sp = read_flags(reader, "sp");
  runs.recompute = read_recompute(reader, "recompute");
  if (reader.has("recompute_to_fit")) runs.recompute_to_fit = read_recompute(reader, "recompute_to_fit");
  for (const char* list : {"zero", "sp", "recompute"})
    if (reader.child(list).items.empty()) reader.fail(list, reader.full_name(list) + " is empty, expected at least one value");
  runs.selective = reader.text("selective", runs.selective);
  runs.interleaves = reader.boolean("interleaves", false);
  runs.always_interleaves = reader.boolean("always_interleaves", false);
  runs.experts_split_like_tp = reader.boolean("experts_split_like_tp", false);
  if (reader.has("low_precision_grad_dtype"))
    runs.low_precision_grad_dtype =
        name_of(reader.choice<DType>("low_precision_grad_dtype", choices({DType::f32, DType::bf16, DType::f16})));
  if (reader.has("rack_dispatcher"))
    runs.rack_dispatcher = name_in(dispatcher_names, reader.choice<Dispatcher>("rack_dispatcher", choices(dispatcher_names)));
  runs.compiles = framework.find("compiled") != nullptr;
  return runs;
}

FrameworkRuns framework_runs(const YamlNode& name, const std::string& folder) {
  if (const auto preset = find_preset(PresetKind::framework, name, folder))
    if (auto runs = read_framework_runs(*preset)) return std::move(*runs);
  const YamlNode generic = make_scalar(Software{}.name, name.place);
  return read_framework_runs(preset_fields(PresetKind::framework, generic, folder)).value();
}

const YamlNode* read_pod(const YamlNode& gpu) {
  const YamlNode* pod = gpu.find("pod");
  if (pod != nullptr && (pod->kind != YamlNode::Kind::scalar || pod->text.empty()))
    throw InputError(pod->place, "pod is " + describe(*pod) + ", expected the name of a cluster preset");
  return pod;
}

YamlNode pod_of_gpu(const YamlNode& name, const std::string& folder) {
  const YamlNode gpu = preset_fields(PresetKind::gpu, name, folder);
  if (const YamlNode* pod = read_pod(gpu)) return *pod;
  throw InputError(name.place, "the GPU preset " + excerpt(name.text) +
                                   " has no field `pod`, expected the cluster preset that is sold with it, one of: " +
                                   joined(preset_names(PresetKind::cluster)));
}

}  // namespace tandem::scenarios
