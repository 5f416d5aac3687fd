#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/spec/names.h"
#include "studies/step/json_value.h"
#include "studies/step/site_json.h"
#include "studies/step/step_interval.h"
#include "studies/step/step_result.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json exposed_json(const TimeParts& parts) {
  Json exposed = Json::object();
  for (const Axis axis : communication_axes) exposed[name_of(axis)] = parts.exposed_on(axis);
  if (parts.exposed_on(Axis::host) > 0) exposed[name_of(Axis::host)] = parts.exposed_on(Axis::host);
  return exposed;
}

Json stage_times_json(const std::vector<StageTime>& times) {
  Json stages = Json::array();
  for (std::size_t s = 0; s < times.size(); ++s) {
    const TimeParts& parts = times[s].parts;
    stages.push_back({{"stage", s},
                      {"ranks", times[s].ranks},
                      {"forward", parts.in_phase(Phase::forward)},
                      {"backward_input", parts.in_phase(Phase::backward_input)},
                      {"backward_weight", parts.in_phase(Phase::backward_weight)},
                      {"recompute", parts.in_phase(Phase::recompute)},
                      {"exposed", exposed_json(parts)},
                      {"bubble", parts.bubble},
                      {"optimizer", parts.optimizer()}});
  }
  return stages;
}

/// An object of a number for each axis.
template <typename Get>
Json by_axis(const Get& get) {
  Json values = Json::object();
  for (const Axis axis : communication_axes) values[name_of(axis)] = get(axis);
  return values;
}

Json by_axis(const AxisValues& values) {
  return by_axis([&](Axis axis) { return values[static_cast<std::size_t>(axis)]; });
}

Json communication_json(const StepMetrics& metrics) {
  const CommunicationOverlap& overlap = metrics.overlap;
  Json hidden_share = Json::object();
  for (const Axis axis : communication_axes)
    if (overlap.on(axis).busy > 0) hidden_share[name_of(axis)] = overlap.on(axis).hidden();
  Json all = {{"sent_bytes", metrics.all_sent()}, {"busy_s", overlap.all.busy}, {"hidden_s", overlap.all.covered}};
  if (overlap.all.busy > 0) all["hidden_share"] = overlap.all.hidden();
  return {{"sent_bytes", by_axis(metrics.sent)},
          {"busy_s", by_axis([&](Axis axis) { return overlap.on(axis).busy; })},
          {"hidden_s", by_axis([&](Axis axis) { return overlap.on(axis).covered; })},
          {"hidden_share", hidden_share},
          {"all", all}};
}

Json layers_json(const std::vector<LayerTraffic>& traffic) {
  Json layers = Json::array();
  for (const LayerTraffic& layer : traffic) {
    Json sent = Json::object();
    for (const Axis axis : layer_axes) sent[name_of(axis)] = layer.sent[static_cast<std::size_t>(axis)];
    layers.push_back({{"layer", layer.layer}, {"ranks", layer.ranks}, {"sent_bytes", sent}, {"activation_bytes", layer.kept}});
  }
  return layers;
}

Json experts_json(const ExpertBalance& balance) {
  Json experts = {{"routing", name_in(scenarios::routing_names,
                                      balance.expert_choice ? scenarios::Routing::expert_choice : scenarios::Routing::top_k)},
                  {"tokens", balance.tokens},
                  {"choices", balance.choices},
                  {"slots", balance.slots},
                  {"dropped", balance.dropped()},
                  {"dropped_share", balance.dropped_share()}};
  if (balance.expert_choice) {
    experts["untaken_share"] = balance.untaken_share();
  } else {
    experts["safe_capacity_factor"] = balance.safe_capacity_factor();
  }
  if (balance.safe_step_time) experts["safe_step_time_s"] = *balance.safe_step_time;
  return experts;
}

StepDocuments step_documents(const JsonValue& documents) {
  StepDocuments read{.count = documents.at("count").whole_number(),
                     .padding = documents.at("padding_tokens").whole_number(),
                     .longest = documents.at("longest_tokens").whole_number(),
                     .attention_share = documents.at("attention_share").number(),
                     .heaviest_micro_batch = documents.at("heaviest_micro_batch").number(),
                     .heaviest_replica = documents.at("heaviest_replica").number()};
  if (documents.has("heaviest_rank")) read.heaviest_rank = documents.at("heaviest_rank").number();
  if (documents.has("mean_cp")) read.mean_ranks = documents.at("mean_cp").number();
  if (documents.has("padding_flops_share")) read.padding_flops_share = documents.at("padding_flops_share").number();
  if (read.count < 1) throw documents.at("count").wrong("a document at least");
  return read;
}

Json policy_json(const PlayedPolicy& played) {
  const SyncPolicy& policy = played.policy;
  Json histogram = Json::array();
  for (const StalenessBin& bin : played.staleness)
    histogram.push_back({{"from", bin.from}, {"to", bin.to}, {"share", bin.share}});
  Json json = {{"kind", name_in(scenarios::sync_kind_names, policy.kind)}};
  if (policy.kind == SyncKind::backup) {
    json["backups"] = policy.backups;
    json["late"] = name_in(scenarios::late_names, policy.abandons);
  }
  if (policy.kind == SyncKind::stale) json["staleness"] = policy.staleness;
  if (policy.kind == SyncKind::local) json["every"] = policy.every;
  if (policy.servers > 0) {
    json["servers"] = policy.servers;
    json["serving_share"] = played.serving_share;
  }
  json.update({{"applied", played.applied},
               {"dropped", played.dropped},
               {"update_time_s", played.update_time},
               {"batch_time_s", played.batch_time},
               {"tokens_per_s_per_gpu", played.tokens_per_second_per_gpu},
               {"speedup", played.speedup},
               {"dropped_share", played.dropped_share},
               {"wasted_share", played.wasted_share},
               {"waiting_share", played.waiting_share},
               {"lacked", {{"mean", played.mean_staleness}, {"max", played.most_stale}, {"histogram", histogram}}},
               {"most_ahead", played.most_ahead}});
  return json;
}

Json sync_json(const SyncComparison& sync) {
  Json json = {{"replicas", sync.replicas},
               {"ranks_of_replica", sync.ranks_of_replica},
               {"steps", sync.steps},
               {"own_step_s", {{"fastest", sync.fastest_step}, {"slowest", sync.slowest_step}, {"deviation", sync.deviation}}},
               {"exchange_s", {{"synchronous", sync.synchronous_exchange}, {"others", sync.exchange}}}};
  if (sync.averaging) json["exchange_s"]["averaging"] = *sync.averaging;
  json["policies"] = Json::array();
  for (const PlayedPolicy& played : sync.policies) json["policies"].push_back(policy_json(played));
  return json;
}

AxisValues axis_values(const JsonValue& of) {
  AxisValues values{};
  for (const Axis axis : communication_axes) of.read(std::string(name_of(axis)), values[static_cast<std::size_t>(axis)]);
  return values;
}

/// Reads what `to_json_object` writes from `parameters` to `layers`.
StepMetrics step_metrics(const JsonValue& root) {
  StepMetrics metrics;
  metrics.parameters = root.at("parameters").at("total").whole_number();
  metrics.active_parameters = root.at("parameters").at("active").whole_number();
  const JsonValue communication = root.at("communication");
  metrics.sent = axis_values(communication.at("sent_bytes"));
  const AxisValues busy = axis_values(communication.at("busy_s")), hidden = axis_values(communication.at("hidden_s"));
  for (std::size_t axis = 0; axis < axis_count; ++axis) metrics.overlap.by_axis[axis] = {busy[axis], hidden[axis]};
  const JsonValue all = communication.at("all");
  metrics.overlap.all = {all.at("busy_s").number(), all.at("hidden_s").number()};
  const JsonValue intensity = root.at("intensity");
  metrics.flops = intensity.at("flops").number();
  metrics.memory_traffic = intensity.at("memory_bytes").number();
  metrics.ridge = intensity.at("ridge_flops_per_byte").number();
  for (const JsonValue& layer : root.at("layers").elements())
    metrics.layers.push_back({.layer = static_cast<std::int32_t>(layer.at("layer").whole_number()),
                              .ranks = layer.at("ranks").whole_number(),
                              .sent = axis_values(layer.at("sent_bytes")),
                              .kept = layer.at("activation_bytes").number()});
  return metrics;
}

std::vector<std::int32_t> counts(const JsonValue& list) {
  std::vector<std::int32_t> numbers;
  for (const JsonValue& number : list.elements()) numbers.push_back(static_cast<std::int32_t>(number.whole_number()));
  return numbers;
}

ExpertBalance expert_balance(const JsonValue& experts) {
  const std::string routing = experts.at("routing").text();
  ExpertBalance balance{.expert_choice = routing == name_in(scenarios::routing_names, scenarios::Routing::expert_choice),
                        .tokens = experts.at("tokens").whole_number(),
                        .choices = counts(experts.at("choices")),
                        .slots = counts(experts.at("slots"))};
  if (balance.choices.empty()) throw experts.at("choices").wrong("an expert at least");
  if (balance.choices.size() != balance.slots.size()) throw experts.at("slots").wrong("as many experts as choices has");
  if (experts.has("safe_step_time_s")) balance.safe_step_time = experts.at("safe_step_time_s").number();
  return balance;
}

template <typename T, std::size_t count>
T value_named(const std::array<scenarios::Named<T>, count>& table, const JsonValue& name) {
  const std::string text = name.text();
  for (const scenarios::Named<T>& named : table)
    if (named.name == text) return named.value;
  throw name.wrong("one of the names that docs/json.md lists");
}

PlayedPolicy played_policy(const JsonValue& json) {
  PlayedPolicy played;
  SyncPolicy& policy = played.policy;
  policy.kind = value_named(scenarios::sync_kind_names, json.at("kind"));
  if (policy.kind == SyncKind::backup) {
    policy.backups = json.at("backups").whole_number();
    policy.abandons = value_named(scenarios::late_names, json.at("late"));
  }
  if (policy.kind == SyncKind::stale) policy.staleness = json.at("staleness").whole_number();
  if (policy.kind == SyncKind::local) policy.every = json.at("every").whole_number();
  if (json.has("servers")) {
    policy.servers = json.at("servers").whole_number();
    played.serving_share = json.at("serving_share").number();
  }
  played.applied = json.at("applied").whole_number();
  played.dropped = json.at("dropped").whole_number();
  played.update_time = json.at("update_time_s").number();
  played.batch_time = json.at("batch_time_s").number();
  played.tokens_per_second_per_gpu = json.at("tokens_per_s_per_gpu").number();
  played.speedup = json.at("speedup").number();
  played.dropped_share = json.at("dropped_share").number();
  played.wasted_share = json.at("wasted_share").number();
  played.waiting_share = json.at("waiting_share").number();
  const JsonValue lacked = json.at("lacked");
  played.mean_staleness = lacked.at("mean").number();
  played.most_stale = lacked.at("max").whole_number();
  for (const JsonValue& bin : lacked.at("histogram").elements())
    played.staleness.push_back(
        {.from = bin.at("from").whole_number(), .to = bin.at("to").whole_number(), .share = bin.at("share").number()});
  played.most_ahead = json.at("most_ahead").whole_number();
  return played;
}

SyncComparison sync_comparison(const JsonValue& json) {
  const JsonValue own = json.at("own_step_s"), exchange = json.at("exchange_s");
  SyncComparison sync{.replicas = json.at("replicas").whole_number(),
                      .ranks_of_replica = json.at("ranks_of_replica").whole_number(),
                      .steps = json.at("steps").whole_number(),
                      .fastest_step = own.at("fastest").number(),
                      .slowest_step = own.at("slowest").number(),
                      .deviation = own.at("deviation").number(),
                      .synchronous_exchange = exchange.at("synchronous").number(),
                      .exchange = exchange.at("others").number()};
  if (exchange.has("averaging")) sync.averaging = exchange.at("averaging").number();
  for (const JsonValue& policy : json.at("policies").elements()) sync.policies.push_back(played_policy(policy));
  return sync;
}

constexpr const char* a_result = "a result, which `tandem simulate SCENARIO --json F` writes";

/// Reads communication, bubble and optimizer, which the step and each of its stages have alike.
TimeParts waiting_parts(const JsonValue& of) {
  TimeParts parts;
  const JsonValue exposed = of.at("exposed");
  exposed.expect_object();
  for (const Axis axis : communication_axes)
    exposed.read(std::string(name_of(axis)), parts.exposed[static_cast<std::size_t>(axis)]);
  if (const std::string host(name_of(Axis::host)); exposed.has(host))
    exposed.read(host, parts.exposed[static_cast<std::size_t>(Axis::host)]);
  parts.bubble = of.at("bubble").number();
  parts.kernels[static_cast<std::size_t>(Phase::optimizer)] = of.at("optimizer").number();
  return parts;
}

TimeParts step_parts(const JsonValue& of) {
  const Seconds compute = of.at("compute").number();
  TimeParts parts = waiting_parts(of);
  parts.kernels[static_cast<std::size_t>(Phase::forward)] = compute;
  return parts;
}

StageTime stage_time(const JsonValue& stage) {
  StageTime time{.ranks = 0, .parts = waiting_parts(stage)};
  stage.read("ranks", time.ranks);
  constexpr std::pair<const char*, Phase> phases[] = {{"forward", Phase::forward},
                                                      {"backward_input", Phase::backward_input},
                                                      {"backward_weight", Phase::backward_weight},
                                                      {"recompute", Phase::recompute}};
  for (const auto& [key, phase] : phases) time.parts.kernels[static_cast<std::size_t>(phase)] = stage.at(key).number();
  return time;
}

Phase phase_named(const JsonValue& value) {
  for (std::size_t phase = 0; phase < phase_count; ++phase)
    if (value.text() == name_of(static_cast<Phase>(phase))) return static_cast<Phase>(phase);
  throw value.wrong("the name of a phase");
}

KindTime kind_time(const JsonValue& kind) {
  KindTime time{.name = kind.at("name").text(), .phase = phase_named(kind.at("phase"))};
  kind.read("count", time.count);
  time.time = kind.at("time_s").number();
  kind.read("assumed_s", time.assumed);
  return time;
}

DeviceMemory device_memory_of(const JsonValue& memory) {
  DeviceMemory device;
  memory.read("allocated_bytes", device.allocated);
  memory.read("reserved_bytes", device.reserved);
  memory.read("nccl_bytes", device.communicators);
  memory.read("context_bytes", device.context);
  if (memory.has("allocation_retries")) memory.read("allocation_retries", device.retries);
  return device;
}

MemoryUse memory_use(const JsonValue& stage) {
  MemoryUse use;
  stage.read("parameters", use.parameters);
  stage.read("gradients", use.gradients);
  stage.read("optimizer", use.optimizer);
  stage.read("buffers", use.buffers);
  if (stage.has("host")) stage.read("host", use.host);
  if (stage.has("graphs")) stage.read("graphs", use.graph_activations);
  const Bytes others = use.peak();
  use.activations = stage.at("peak_bytes").whole_number() - others;
  stage.read("peak_at_s", use.peak_at);
  return use;
}

void read_run(const JsonValue& run, StepResult& result) {
  run.read("rank_classes", result.rank_classes);
  run.read("link_classes", result.link_classes);
  run.read("tasks", result.tasks);
  run.read("wall_s", result.run.wall);
  run.read("peak_rss_bytes", result.run.peak_rss);
  run.read("backend", result.run.backend);
  if (run.has("undated_step_s")) result.run.undated_step = run.at("undated_step_s").number();
  run.read("collectives", result.run.collectives);
  if (run.has("tasks_simulated")) run.read("tasks_simulated", result.run.tasks_simulated);
  if (run.has("folded")) result.run.folded = run.at("folded").truth();
  if (run.has("jitter_wall_s") && result.jitter) result.jitter->wall = run.at("jitter_wall_s").number();
  if (!run.has("fold")) return;
  const JsonValue fold = run.at("fold");
  result.merged_fold = MergedFold{.tolerance = fold.at("tolerance").number(),
                                  .lower = fold.at("step_time_lower_s").number(),
                                  .upper = fold.at("step_time_upper_s").number()};
}

JitterTimes jitter_times(const JsonValue& jitter) {
  return {.draws = static_cast<std::size_t>(jitter.at("draws").whole_number()),
          .p50 = jitter.at("p50_s").number(),
          .p90 = jitter.at("p90_s").number(),
          .p99 = jitter.at("p99_s").number(),
          .mean = jitter.at("mean_s").number()};
}

void expect_sum(const StepResult& result, const std::string& file) {
  constexpr double tolerance = 1e-6;
  const Seconds sum = result.parts.total();
  if (std::abs(sum - result.step_time) <= tolerance * result.step_time) return;
  throw InputError({file, 0, 0}, fmt::format("`time_s` adds up to {:g} s and `step_time_s` is {:g}, expected the same, as in a "
                                             "result that nobody changed",
                                             sum, result.step_time));
}

StepResult read_result(const JsonValue& root) {
  StepResult result;
  result.scenario = root.at("scenario").text();
  result.step_time = root.at("step_time_s").number();
  if (result.step_time <= 0) throw root.at("step_time_s").wrong("more than 0");
  result.parts = step_parts(root.at("time_s"));
  expect_sum(result, root.file());
  const JsonValue memory = root.at("memory");
  for (const JsonValue& stage : memory.at("stages").elements()) result.stages.push_back(memory_use(stage));
  if (memory.has("reserved_bytes")) result.device_memory = device_memory_of(memory);
  if (result.stages.empty()) throw memory.at("stages").wrong("a stage at least");
  memory.read("gpu_bytes", result.gpu_memory);

  root.read("gpus", result.gpus);
  root.read("gpu", result.gpu);
  root.read("gpu_architecture", result.gpu_architecture);
  root.read("framework", result.framework);
  if (root.has("site")) result.site = site_from_json(root.at("site"));
  root.read("tokens", result.tokens);
  root.read("tokens_per_s_per_gpu", result.tokens_per_second_per_gpu);
  constexpr double tera = 1e12;
  root.read("model_tflops_per_gpu", result.model_flops_per_gpu);
  result.model_flops_per_gpu *= tera;
  if (root.has("flops_convention")) result.causal = root.at("flops_convention").text() != "full";
  root.read("mfu", result.mfu);
  root.read("hfu", result.hfu);
  root.read("sync_every", result.sync_every);
  if (root.has("step_time_local_s"))
    result.step_kinds = {.local = root.at("step_time_local_s").number(), .sync = root.at("step_time_sync_s").number()};
  if (root.has("stages_s"))
    for (const JsonValue& stage : root.at("stages_s").elements()) result.stage_times.push_back(stage_time(stage));
  if (root.has("kinds"))
    for (const JsonValue& kind : root.at("kinds").elements()) result.kinds.push_back(kind_time(kind));
  if (root.has("layers")) result.metrics = step_metrics(root);
  if (root.has("experts")) result.experts = expert_balance(root.at("experts"));
  if (root.has("documents")) result.documents = step_documents(root.at("documents"));
  if (root.has("bounds_s")) {
    result.lower_bound = root.at("bounds_s").at("lower").number();
    result.upper_bound = root.at("bounds_s").at("upper").number();
  }
  if (root.has("warnings"))
    for (const JsonValue& warning : root.at("warnings").elements()) result.warnings.push_back(warning.text());
  if (root.has("sync")) result.sync = sync_comparison(root.at("sync"));
  if (root.has("jitter")) result.jitter = jitter_times(root.at("jitter"));
  if (root.has("run")) read_run(root.at("run"), result);
  return result;
}

}  // namespace

Json to_json_object(const TimeParts& parts) {
  return {
      {"compute", parts.compute()}, {"exposed", exposed_json(parts)}, {"bubble", parts.bubble}, {"optimizer", parts.optimizer()}};
}

Json to_json_list(const std::vector<KindTime>& times) {
  Json kinds = Json::array();
  for (const KindTime& kind : times) {
    kinds.push_back({{"name", kind.name}, {"phase", name_of(kind.phase)}, {"count", kind.count}, {"time_s", kind.time}});
    if (kind.assumed > 0) kinds.back()["assumed_s"] = kind.assumed;
  }
  return kinds;
}

namespace {

Json memory_json(const StepResult& r, Json stages) {
  Json memory = {{"peak_bytes", r.peak_memory()}, {"gpu_bytes", r.gpu_memory}, {"fits", r.fits()}};
  if (r.device_memory) {
    memory["allocated_bytes"] = r.device_memory->allocated;
    memory["reserved_bytes"] = r.device_memory->reserved;
    memory["nccl_bytes"] = r.device_memory->communicators;
    memory["context_bytes"] = r.device_memory->context;
    memory["device_bytes"] = r.device_memory->device();
    memory["allocation_retries"] = r.device_memory->retries;
    memory["device_fits"] = r.device_memory->device() <= r.gpu_memory;
  }
  memory["stages"] = std::move(stages);
  return memory;
}

}  // namespace

Json to_json_object(const StepResult& r) {
  Json stages = Json::array();
  for (std::size_t s = 0; s < r.stages.size(); ++s) {
    const MemoryUse& m = r.stages[s];
    stages.push_back({{"stage", s},
                      {"parameters", m.parameters},
                      {"gradients", m.gradients},
                      {"optimizer", m.optimizer},
                      {"activations", m.activations},
                      {"buffers", m.buffers},
                      {"peak_bytes", m.peak()},
                      {"peak_at_s", m.peak_at}});
    if (m.host > 0) stages.back()["host"] = m.host;
    if (m.graphs() > 0) stages.back()["graphs"] = m.graphs();
  }
  Json json = {{"scenario", r.scenario},
               {"gpus", r.gpus},
               {"gpu", r.gpu},
               {"gpu_architecture", r.gpu_architecture},
               {"framework", r.framework},
               {"tokens", r.tokens},
               {"step_time_s", r.step_time},
               {"tokens_per_s_per_gpu", r.tokens_per_second_per_gpu},
               {"model_tflops_per_gpu", r.model_flops_per_gpu / 1e12},
               {"mfu", r.mfu},
               {"hfu", r.hfu},
               {"flops_convention", r.causal ? "causal" : "full"},
               {"bubble_fraction", r.parts.bubble / r.step_time},
               {"time_s", to_json_object(r.parts)},
               {"stages_s", stage_times_json(r.stage_times)},
               {"kinds", to_json_list(r.kinds)},
               {"memory", memory_json(r, std::move(stages))},
               {"bounds_s", {{"lower", r.lower_bound}, {"upper", r.upper_bound}}},
               {"warnings", r.warnings},
               {"run",
                {{"ranks", r.gpus},
                 {"rank_classes", r.rank_classes},
                 {"link_classes", r.link_classes},
                 {"tasks", r.tasks},
                 {"wall_s", r.run.wall},
                 {"peak_rss_bytes", r.run.peak_rss},
                 {"backend", r.run.backend},
                 {"folded", r.run.folded}}}};
  if (r.metrics) {
    json["parameters"] = {{"total", r.metrics->parameters}, {"active", r.metrics->active_parameters}};
    json["communication"] = communication_json(*r.metrics);
    json["intensity"] = {{"flops", r.metrics->flops},
                         {"memory_bytes", r.metrics->memory_traffic},
                         {"flops_per_byte", r.metrics->intensity()},
                         {"ridge_flops_per_byte", r.metrics->ridge}};
    json["layers"] = layers_json(r.metrics->layers);
  }
  if (r.experts) json["experts"] = experts_json(*r.experts);
  if (r.documents)
    json["documents"] = {{"count", r.documents->count},
                         {"mean_tokens", r.mean_document()},
                         {"longest_tokens", r.documents->longest},
                         {"padding_tokens", r.documents->padding},
                         {"padding_flops_share", r.documents->padding_flops_share},
                         {"mfu_without_padding", r.mfu_without_padding()},
                         {"attention_share", r.documents->attention_share},
                         {"heaviest_micro_batch", r.documents->heaviest_micro_batch},
                         {"heaviest_replica", r.documents->heaviest_replica},
                         {"heaviest_rank", r.documents->heaviest_rank},
                         {"mean_cp", r.documents->mean_ranks}};
  if (!r.run.collectives.empty()) json["run"]["collectives"] = r.run.collectives;
  if (r.is_simulated() && r.run.tasks_simulated > 0) json["run"]["tasks_simulated"] = r.run.tasks_simulated;
  if (r.run.undated_step) json["run"]["undated_step_s"] = *r.run.undated_step;
  if (r.sync_every > 1) json["sync_every"] = r.sync_every;
  if (r.site.known()) json["site"] = to_json_object(r.site);
  if (r.is_simulated()) json["interval_s"] = to_json_object(step_interval(r));
  if (r.step_kinds) {
    json["step_time_local_s"] = r.step_kinds->local;
    json["step_time_sync_s"] = r.step_kinds->sync;
  }
  if (r.jitter) {
    json["jitter"] = {{"draws", r.jitter->draws},
                      {"p50_s", r.jitter->p50},
                      {"p90_s", r.jitter->p90},
                      {"p99_s", r.jitter->p99},
                      {"mean_s", r.jitter->mean}};
    json["run"]["jitter_wall_s"] = r.jitter->wall;
  }
  if (r.sync) json["sync"] = sync_json(*r.sync);
  if (r.merged_fold) {
    json["run"]["fold"] = {{"tolerance", r.merged_fold->tolerance},
                           {"step_time_lower_s", r.merged_fold->lower},
                           {"step_time_upper_s", r.merged_fold->upper}};
  }
  return json;
}

std::string to_json(const StepResult& result) { return to_json_object(result).dump(1) + "\n"; }

StepResult step_result_from_json(const Json& json, const std::string& file) {
  return read_result(JsonValue(json, file, a_result));
}

StepResult step_result_from_json(const std::string& text, const std::string& file) {
  return step_result_from_json(parse_json(text, file, a_result), file);
}

StepResult read_step_result(const std::string& path) { return step_result_from_json(read_text_file(path, a_result), path); }

}  // namespace tandem::studies
