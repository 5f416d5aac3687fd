#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

void read_overlap(const YamlNode& node, TrainingSpec& spec) {
  const Reader overlap(node, "training.overlap", {name_of(Axis::dp), name_of(Axis::tp), name_of(Axis::pp), name_of(Axis::ep)});
  spec.overlap_dp = overlap.boolean(name_of(Axis::dp), true);
  spec.overlap_tp = overlap.boolean(name_of(Axis::tp), false);
  spec.overlap_pp = overlap.boolean(name_of(Axis::pp), true);
  spec.overlap_ep = overlap.boolean(name_of(Axis::ep), false);
}

OffloadSpec read_offload(const YamlNode& node) {
  const Reader offload(node, "training.offload", {"optimizer", "overlap_optimizer", "activations"});
  return {.optimizer = offload.number("optimizer", {0, 1}, 0),
          .overlap_optimizer = offload.boolean("overlap_optimizer", false),
          .activations = offload.integer("activations", {0, max_layers}, 0)};
}

/// `shares` of the lengths, if they are several.
void read_shares(const Reader& documents, DocumentsSpec& spec) {
  if (!documents.has("shares")) return;
  spec.shares = documents.numbers("shares", {0, 1e12}, {});
  if (spec.shares.size() != spec.lengths.size())
    documents.fail("shares", fmt::format("training.documents.shares are {} for {} lengths, expected one for each of "
                                         "training.documents.lengths",
                                         spec.shares.size(), spec.lengths.size()));
  if (!(*std::ranges::max_element(spec.shares) > 0))
    documents.fail("shares", "training.documents.shares are all 0, expected one above it");
}

DocumentsSpec read_documents(const YamlNode& node) {
  const Reader documents(node, "training.documents",
                         {"length", "lengths", "shares", "mean", "sigma", "longest", "packing", "balance", "streams", "seed"});
  const Range<std::int64_t> tokens{1, 16'777'216};
  DocumentsSpec spec;
  const bool by_mean = documents.has("mean");
  if (documents.has("length") + documents.has("lengths") + by_mean > 1)
    documents.fail(by_mean ? "mean" : "lengths",
                   "training.documents has several of length, lengths and mean, expected one of them");
  if (documents.has("length")) spec.lengths = {documents.integer("length", tokens)};
  if (documents.has("lengths")) {
    spec.lengths = documents.integers("lengths", tokens);
    if (spec.lengths.empty()) documents.fail("lengths", "training.documents.lengths is empty, expected a length at least");
  }
  read_shares(documents, spec);
  if (by_mean) spec.mean = documents.number("mean", {1, 1e9});
  if (by_mean) spec.sigma = documents.number("sigma", {0, 10});
  spec.longest = documents.integer("longest", tokens, 0);
  spec.packing = documents.choice<Packing>("packing", choices(packing_names), Packing::cut);
  spec.balance = documents.choice<DocumentBalance>("balance", choices(document_balance_names), DocumentBalance::none);
  spec.streams = documents.integer("streams", {1, max_gpus}, 1);
  spec.seed = static_cast<std::uint64_t>(documents.integer("seed", {0, std::numeric_limits<std::int64_t>::max()}, 1));
  for (const std::string_view field : {"sigma", "longest", "packing", "balance", "streams", "seed"})
    if (documents.has(field) && (field == "sigma" ? !by_mean : !spec.any()))
      documents.fail(field, fmt::format("training.documents.{} without {}, expected both or neither", field,
                                        field == "sigma" ? "mean" : "length, lengths or mean"));
  return spec;
}

CompressorSpec read_compressor(const YamlNode& node) {
  const Reader compressor(node, "training.compressor", {"method", "ratio", "rank"});
  CompressorSpec spec;
  spec.method = compressor.choice<CompressionMethod>("method", choices(compression_method_names), spec.method);
  spec.ratio = compressor.number("ratio", {1, 1e6}, spec.ratio);
  spec.rank = compressor.integer("rank", {1, 1'024}, spec.rank);
  const auto belongs_to = [&](std::string_view field, CompressionMethod method) {
    if (compressor.has(field) && spec.method != method)
      compressor.fail(field,
                      fmt::format("training.compressor.{} with method {}, expected method {}, which it is for", field,
                                  name_in(compression_method_names, spec.method), name_in(compression_method_names, method)));
  };
  belongs_to("ratio", CompressionMethod::top_k);
  belongs_to("rank", CompressionMethod::powersgd);
  return spec;
}

/// The one field that a kind of policy needs; empty where it needs none.
std::string_view size_of_policy(SyncKind kind) {
  switch (kind) {
    case SyncKind::backup:
      return "backups";
    case SyncKind::stale:
      return "staleness";
    case SyncKind::local:
      return "every";
    case SyncKind::synchronous:
    case SyncKind::asynchronous:
      break;
  }
  return "";
}

SyncPolicy read_sync_policy(const YamlNode& node) {
  const Reader policy(node, "training.sync", {"kind", "backups", "late", "staleness", "every", "servers"});
  SyncPolicy spec;
  spec.kind = policy.choice<SyncKind>("kind", choices(sync_kind_names));
  const std::string kind(name_in(sync_kind_names, spec.kind));
  for (const SyncKind other : {SyncKind::backup, SyncKind::stale, SyncKind::local}) {
    const std::string_view field = size_of_policy(other);
    if (other != spec.kind && policy.has(field))
      policy.fail(field, fmt::format("training.sync.{} is of kind {}, and this is kind {}; expected one of the two", field,
                                     name_in(sync_kind_names, other), kind));
  }
  if (policy.has("late") && spec.kind != SyncKind::backup)
    policy.fail("late", fmt::format("training.sync.late is of kind backup, and this is kind {}; expected one of the two", kind));
  const bool is_free = spec.kind == SyncKind::stale || spec.kind == SyncKind::asynchronous;
  if (policy.has("servers") && !is_free)
    policy.fail("servers", fmt::format("training.sync.servers is of kinds stale and asynchronous, and this is kind {}; expected "
                                       "one of the two",
                                       kind));
  if (is_free) spec.servers = policy.integer("servers", {0, max_gpus}, 0);
  if (spec.kind == SyncKind::backup) {
    spec.backups = policy.integer("backups", {1, max_gpus});
    spec.abandons = policy.choice<bool>("late", choices(late_names), false);
  }
  if (spec.kind == SyncKind::stale) spec.staleness = policy.integer("staleness", {0, 1'000'000});
  if (spec.kind == SyncKind::local) spec.every = policy.integer("every", {2, 1'000});
  return spec;
}

std::vector<SyncPolicy> read_sync(const Reader& training) {
  std::vector<SyncPolicy> policies;
  for (const YamlNode* item : one_or_several(training.child("sync"))) {
    policies.push_back(read_sync_policy(*item));
    if (std::ranges::count(policies, policies.back()) > 1)
      throw InputError(item->place, "training.sync lists one policy twice, expected distinct policies");
  }
  return policies;
}

YamlNode write_sync_policy(const SyncPolicy& policy) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "kind", name_in(sync_kind_names, policy.kind));
  if (policy.kind == SyncKind::backup) {
    put(node, "backups", policy.backups);
    put(node, "late", name_in(late_names, policy.abandons));
  }
  if (policy.kind == SyncKind::stale) put(node, "staleness", policy.staleness);
  if (policy.kind == SyncKind::local) put(node, "every", policy.every);
  if (policy.servers > 0) put(node, "servers", policy.servers);
  return node;
}

RecomputeSpec read_modules(const Reader& training, const YamlNode& list) {
  RecomputeSpec spec;
  for (const YamlNode& item : list.items) {
    const auto module = training.choice_of<RecomputeModule>(item, "recompute", choices(recompute_module_names));
    if (spec.*module) throw InputError(item.place, "training.recompute names " + item.text + " twice, expected each module once");
    spec.*module = true;
  }
  return spec;
}

Recipe read_recipe(const Reader& training, DType precision) {
  std::vector<Choice<Recipe>> recipes =
      choices({Recipe::delayed, Recipe::current, Recipe::blockwise, Recipe::mxfp8, Recipe::nvfp4});
  recipes.push_back({"tensorwise", Recipe::current});  // Megatron-Core's word
  return training.choice<Recipe>("recipe", recipes, usual_recipe(precision));
}

std::int64_t read_layers_in_bf16(const Reader& training, std::string_view key, const TrainingSpec& spec) {
  const std::int64_t layers = training.integer(key, {0, max_layers}, 1);
  if (training.has(key) && !spec.first_last_layers_bf16)
    training.fail(key, fmt::format("training.{} without first_last_layers_bf16, expected both or neither", key));
  return layers;
}

bool read_param_gather(const Reader& training, std::string_view key, DType type, DType precision) {
  const bool on = training.boolean(key, false);
  if (on && precision != type)
    training.fail(key, fmt::format("training.{} with precision {}, expected precision {}, or false", key, name_of(precision),
                                   name_of(type)));
  return on;
}

void read_recompute_every(const Reader& training, RecomputeSpec& spec) {
  if (!training.has("recompute_every")) return;
  if (spec.every == 0)
    training.fail("recompute_every", "training.recompute_every without recompute full, expected both or neither");
  spec.every = training.integer("recompute_every", {1, max_layers});
}

void read_recompute_segment(const Reader& training, RecomputeSpec& spec) {
  if (!training.has("recompute_segment")) return;
  if (spec.every == 0)
    training.fail("recompute_segment", "training.recompute_segment without recompute full, expected both or neither");
  spec.segment = training.integer("recompute_segment", {1, max_layers});
  if (spec.segment > 1 && spec.every > 1)
    training.fail("recompute_segment",
                  "training.recompute_segment with recompute_every, expected one of them: a segment's layers are all recomputed");
}

}  // namespace

ScheduleKind read_schedule(const Reader& training) {
  std::vector<Choice<ScheduleKind>> schedules;
  for (const ScheduleTraits& traits : schedule_table()) {
    schedules.push_back({traits.name, traits.kind});
    if (!traits.elsewhere.empty() && training.child("schedule").text == traits.elsewhere)
      training.fail("schedule", fmt::format("training.schedule cannot be `{}`; did you mean `{}`, which is the same schedule?",
                                            traits.elsewhere, traits.name));
  }
  return training.choice<ScheduleKind>("schedule", schedules, ScheduleKind::one_f_one_b);
}

RecomputeSpec read_recompute(const Reader& training) {
  const YamlNode& node = training.child("recompute");
  return node.kind == YamlNode::Kind::sequence
             ? read_modules(training, node)
             : training.choice<RecomputeSpec>("recompute", choices(recompute_names), no_recompute);
}

TrainingSpec read_training(const YamlNode& node) {
  const Reader training(node, "training",
                        {"sequence",
                         "micro_batch",
                         "global_batch",
                         "documents",
                         "precision",
                         "recipe",
                         "tp_only_amax_red",
                         "first_last_layers_bf16",
                         "num_layers_at_start_in_bf16",
                         "num_layers_at_end_in_bf16",
                         "cuda_graph",
                         "schedule",
                         "recompute",
                         "recompute_every",
                         "recompute_segment",
                         "overlap",
                         "gates_at_experts",
                         "grad_dtype",
                         "optimizer",
                         "muon_tp",
                         "moment_dtype",
                         "second_moment_dtype",
                         "master_dtype",
                         "fp8_param_gather",
                         "fp4_param_gather",
                         "fp8_attention",
                         "fp8_output_proj",
                         "fp8_activation_input",
                         "framework",
                         "compiled",
                         "cross_entropy_fusion",
                         "attention",
                         "bucket_MB",
                         "sync_every",
                         "sync",
                         "sync_steps",
                         "grad_compression",
                         "compressor",
                         "hierarchical_all_reduce",
                         "hidden_dropout",
                         "attention_dropout",
                         "offload"});
  TrainingSpec spec;
  spec.sequence = training.integer("sequence", {1, 16'777'216});
  spec.micro_batch = training.integer("micro_batch", {1, 4'096}, 1);
  spec.global_batch = training.integer("global_batch", {1, 16'777'216});
  spec.documents = read_documents(training.child("documents"));
  spec.precision =
      training.choice<DType>("precision", choices({DType::bf16, DType::f16, DType::f32, DType::f8, DType::f4}), DType::bf16);
  spec.recipe = read_recipe(training, spec.precision);
  spec.tp_only_amax_red = training.boolean("tp_only_amax_red", false);
  spec.first_last_layers_bf16 = training.boolean("first_last_layers_bf16", false);
  spec.num_layers_at_start_in_bf16 = read_layers_in_bf16(training, "num_layers_at_start_in_bf16", spec);
  spec.num_layers_at_end_in_bf16 = read_layers_in_bf16(training, "num_layers_at_end_in_bf16", spec);
  spec.cuda_graph = training.choice<CudaGraph>("cuda_graph", choices({CudaGraph::none, CudaGraph::attention, CudaGraph::full}),
                                               CudaGraph::none);
  spec.grad_dtype = training.choice<DType>("grad_dtype", choices({DType::f32, DType::bf16, DType::f16}), DType::f32);
  spec.optimizer = training.choice<OptimizerKind>("optimizer", choices(optimizer_names), OptimizerKind::adam);
  spec.muon_tp = training.choice<MuonTp>("muon_tp", choices(muon_tp_names), MuonTp::distributed);
  const auto moments = choices({DType::f32, DType::bf16, DType::f16, DType::f8});
  spec.moment_dtype = training.choice<DType>("moment_dtype", moments, DType::f32);
  spec.second_moment_dtype = training.choice<DType>("second_moment_dtype", moments, spec.moment_dtype);
  spec.master_dtype = training.choice<DType>("master_dtype", choices({DType::f32, DType::f16}), DType::f32);
  spec.param_gather = read_param_gather(training, "fp8_param_gather", DType::f8, spec.precision) ||
                      read_param_gather(training, "fp4_param_gather", DType::f4, spec.precision);
  spec.fp8_attention = training.boolean("fp8_attention", false);
  spec.fp8_output_proj = training.boolean("fp8_output_proj", false);
  spec.fp8_activation_input = training.boolean("fp8_activation_input", false);
  spec.schedule = read_schedule(training);
  spec.recompute = read_recompute(training);
  read_recompute_every(training, spec.recompute);
  read_recompute_segment(training, spec.recompute);
  read_overlap(training.child("overlap"), spec);
  spec.gates_at_experts = training.boolean("gates_at_experts", false);
  if (training.has("attention")) spec.attention = read_attention_kernel(training, "attention");
  if (training.has("bucket_MB")) {
    const double bucket_bytes = training.number("bucket_MB", {1e-3, 1e9}) * 1e6;
    spec.bucket_parameters = std::llround(bucket_bytes / static_cast<double>(size_of(spec.grad_dtype)));
  }
  spec.hierarchical_all_reduce = training.boolean("hierarchical_all_reduce", false);
  spec.grad_compression = training.choice<std::int64_t>("grad_compression", {{"1", 1}, {"2", 2}, {"4", 4}}, 1);
  spec.compressor = read_compressor(training.child("compressor"));
  spec.offload = read_offload(training.child("offload"));
  spec.sync_every = training.integer("sync_every", {1, 1'000'000}, 1);
  spec.sync = read_sync(training);
  if (training.has("sync_steps") && spec.sync.empty())
    training.fail("sync_steps", "training.sync_steps without training.sync, expected both or neither");
  spec.sync_steps = training.integer("sync_steps", {1, 100'000}, 200);
  spec.hidden_dropout = training.number("hidden_dropout", dropout_range, 0);
  spec.attention_dropout = training.number("attention_dropout", dropout_range, 0);
  return spec;
}

namespace {

YamlNode recompute_node(const RecomputeSpec& recompute) {
  const auto named = [](const RecomputeSpec& spec) { return make_scalar(std::string(name_in(recompute_names, spec)), {}); };
  if (recompute.every > 0) return named(full_recompute);
  if (recompute.mlp_every > 1) return named(selective_op_recompute);
  std::vector<std::string> modules;
  for (const Named<RecomputeModule>& module : recompute_module_names)
    if (recompute.*module.value) modules.emplace_back(module.name);
  if (modules.empty()) return named(no_recompute);
  return list_of(modules);
}

template <typename Number>
YamlNode list_of_numbers(const std::vector<Number>& numbers) {
  YamlNode list = make_node(YamlNode::Kind::sequence, {});
  for (const Number number : numbers) {
    YamlNode item = make_node(YamlNode::Kind::mapping, {});
    put(item, "number", number);
    list.items.push_back(*item.find("number"));
  }
  return list;
}

YamlNode documents_node(const DocumentsSpec& documents) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  if (!documents.lengths.empty()) put(node, "lengths", list_of_numbers(documents.lengths));
  if (!documents.shares.empty()) put(node, "shares", list_of_numbers(documents.shares));
  if (documents.mean > 0) {
    put(node, "mean", documents.mean);
    put(node, "sigma", documents.sigma);
  }
  if (documents.longest > 0) put(node, "longest", documents.longest);
  put(node, "packing", name_in(packing_names, documents.packing));
  put(node, "balance", name_in(document_balance_names, documents.balance));
  put(node, "streams", documents.streams);
  put(node, "seed", static_cast<std::int64_t>(documents.seed));
  return node;
}

}  // namespace

YamlNode write_training(const TrainingSpec& training) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "sequence", training.sequence);
  put(node, "micro_batch", training.micro_batch);
  put(node, "global_batch", training.global_batch);
  if (training.documents.any()) put(node, "documents", documents_node(training.documents));
  put(node, "precision", name_of(training.precision));
  if (training.recipe != usual_recipe(training.precision)) put(node, "recipe", name_of(training.recipe));
  if (training.tp_only_amax_red) put(node, "tp_only_amax_red", true);
  if (training.first_last_layers_bf16) {
    put(node, "first_last_layers_bf16", true);
    put(node, "num_layers_at_start_in_bf16", training.num_layers_at_start_in_bf16);
    put(node, "num_layers_at_end_in_bf16", training.num_layers_at_end_in_bf16);
  }
  if (training.cuda_graph != CudaGraph::none) put(node, "cuda_graph", name_of(training.cuda_graph));
  put(node, "grad_dtype", name_of(training.grad_dtype));
  if (training.optimizer != OptimizerKind::adam) put(node, "optimizer", name_in(optimizer_names, training.optimizer));
  if (training.muon_tp != MuonTp::distributed) put(node, "muon_tp", name_in(muon_tp_names, training.muon_tp));
  if (training.moment_dtype != DType::f32) put(node, "moment_dtype", name_of(training.moment_dtype));
  if (training.second_moment_dtype != training.moment_dtype)
    put(node, "second_moment_dtype", name_of(training.second_moment_dtype));
  if (training.master_dtype != DType::f32) put(node, "master_dtype", name_of(training.master_dtype));
  if (training.param_gather) put(node, training.precision == DType::f4 ? "fp4_param_gather" : "fp8_param_gather", true);
  if (training.fp8_attention) put(node, "fp8_attention", true);
  if (training.fp8_output_proj) put(node, "fp8_output_proj", true);
  if (training.fp8_activation_input) put(node, "fp8_activation_input", true);
  put(node, "schedule", name_of(training.schedule));
  put(node, "recompute", recompute_node(training.recompute));
  if (training.recompute.every > 0) put(node, "recompute_every", training.recompute.every);
  if (training.recompute.in_segments()) put(node, "recompute_segment", training.recompute.segment);
  YamlNode& overlap = section_of(node, "overlap");
  put(overlap, name_of(Axis::dp), training.overlap_dp);
  put(overlap, name_of(Axis::tp), training.overlap_tp);
  put(overlap, name_of(Axis::pp), training.overlap_pp);
  if (training.overlap_ep) put(overlap, name_of(Axis::ep), true);
  if (training.gates_at_experts) put(node, "gates_at_experts", true);
  const auto bucket = static_cast<double>(training.bucket_parameters) * static_cast<double>(size_of(training.grad_dtype));
  put(node, "bucket_MB", bucket / 1e6);
  put(node, "hierarchical_all_reduce", training.hierarchical_all_reduce);
  put(node, "sync_every", training.sync_every);
  if (!training.sync.empty()) {
    YamlNode policies = make_node(YamlNode::Kind::sequence, {});
    for (const SyncPolicy& policy : training.sync) policies.items.push_back(write_sync_policy(policy));
    put(node, "sync", std::move(policies));
    if (training.sync_steps != TrainingSpec{}.sync_steps) put(node, "sync_steps", training.sync_steps);
  }
  if (training.attention) put(node, "attention", name_of(*training.attention));
  put(node, "grad_compression", training.grad_compression);
  if (const CompressorSpec& spec = training.compressor; spec.keeps_residuals()) {
    YamlNode& compressor = section_of(node, "compressor");
    put(compressor, "method", name_in(compression_method_names, spec.method));
    if (spec.method == CompressionMethod::top_k) put(compressor, "ratio", spec.ratio);
    if (spec.method == CompressionMethod::powersgd) put(compressor, "rank", spec.rank);
  }
  put(node, "hidden_dropout", training.hidden_dropout);
  put(node, "attention_dropout", training.attention_dropout);
  if (training.offload.any()) {
    YamlNode& offload = section_of(node, "offload");
    put(offload, "optimizer", training.offload.optimizer);
    put(offload, "overlap_optimizer", training.offload.overlap_optimizer);
    put(offload, "activations", training.offload.activations);
  }
  return node;
}

}  // namespace tandem::scenarios
