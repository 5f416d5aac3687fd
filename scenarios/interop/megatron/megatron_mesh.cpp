#include <algorithm>
#include <stdexcept>

#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/pipeline_layout.h"

namespace tandem::scenarios {

/// The first of --hierarchical-context-parallel-sizes 2 4: ranks that deal out heads.
std::int64_t MegatronReader::dealt_ranks() {
  constexpr const char* name = "hierarchical-context-parallel-sizes";
  const std::vector<std::string> sizes = arguments_.values(name);
  const std::int64_t dealt = arguments_.integer(name, 0);
  if (sizes.size() != 2 || dealt < 1 || cp_ % dealt != 0 || sizes.back() != std::to_string(cp_ / dealt))
    fail(name, "two sizes whose product is --context-parallel-size, as in 2 4");
  return dealt;
}

void MegatronReader::mesh() {
  YamlNode& node = section("parallelism");
  put(node, name_of(Axis::tp), tp_, arguments_.place("tensor-model-parallel-size"));
  // Without tensor parallelism Megatron-LM drops it.
  put(node, "sp", arguments_.has("sequence-parallel") && tp_ > 1, arguments_.place("sequence-parallel"));
  put(node, name_of(Axis::cp), cp_, arguments_.place("context-parallel-size"));
  set(section_of(section("training"), "overlap", {.file = file_}), name_of(Axis::tp), "tp-comm-overlap");
  const std::string type = arguments_.text("cp-comm-type", "p2p");
  const std::vector<std::string> types = arguments_.values("cp-comm-type");
  if (std::ranges::any_of(types, [&](const std::string& one) { return one != type; })) fail("cp-comm-type", "one for all layers");
  const Place place = arguments_.place("cp-comm-type");
  if (type == "p2p") {
    put(node, "cp_method", name_in(cp_method_names, CpMethod::ring), place);
  } else if (type == "a2a") {
    put(node, "cp_method", name_in(cp_method_names, CpMethod::ulysses), place);
  } else if (type == "all_gather" || type == "allgather") {
    put(node, "cp_method", name_in(cp_method_names, CpMethod::all_gather), place);
  } else if (type == "a2a+p2p") {
    put(node, "cp_method", name_in(cp_method_names, CpMethod::ulysses_ring), place);
    put(node, "cp_ulysses", dealt_ranks(), arguments_.place("hierarchical-context-parallel-sizes"));
  } else {
    fail("cp-comm-type", "p2p, all_gather, a2a or a2a+p2p");
  }
  if (!arguments_.has("use-tp-pp-dp-mapping")) return;
  YamlNode order = make_node(YamlNode::Kind::sequence, arguments_.place("use-tp-pp-dp-mapping"));
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp})
    order.items.push_back(make_scalar(std::string(name_of(axis)), order.place));
  put(node, "order", std::move(order));
}

void MegatronReader::pipeline() {
  YamlNode& node = section("parallelism");
  put(node, name_of(Axis::pp), pp_, arguments_.place("pipeline-model-parallel-size"));
  set(node, "account_for_embedding", "account-for-embedding-in-pipeline-split");
  set(node, "account_for_loss", "account-for-loss-in-pipeline-split");
  if (arguments_.has("decoder-first-pipeline-num-layers"))
    arguments_.copy_integer(node, "first_stage_layers", "decoder-first-pipeline-num-layers", 0);
  if (arguments_.has("decoder-last-pipeline-num-layers"))
    arguments_.copy_integer(node, "last_stage_layers", "decoder-last-pipeline-num-layers", 0);
  std::string name = "num-virtual-stages-per-pipeline-rank";
  vpp_ = positive(name.c_str(), 1);
  if (arguments_.has("num-layers-per-virtual-pipeline-stage")) {
    name = "num-layers-per-virtual-pipeline-stage";
    const std::int64_t accounted = layers_ + (arguments_.has("account-for-embedding-in-pipeline-split") ? 1 : 0) +
                                   (arguments_.has("account-for-loss-in-pipeline-split") ? 1 : 0);
    vpp_ = std::max<std::int64_t>(1, accounted / pp_ / positive(name.c_str(), 1));
  }
  if (arguments_.has("pipeline-model-parallel-layout")) {
    name = "pipeline-model-parallel-layout";
    vpp_ = layout(node);
  }
  put(node, "vpp", vpp_, arguments_.place(name));
  put(section("training"), "schedule", name_of(vpp_ > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b),
      arguments_.place(name));
  put(section_of(section("training"), "overlap"), name_of(Axis::pp), !arguments_.has("no-overlap-p2p-communication"),
      {.file = file_});
  set(section_of(section("training"), "overlap"), name_of(Axis::ep), "overlap-moe-expert-parallel-comm");
  arguments_.has("delay-wgrad-compute");  // as overlap.ep does in any case
}

/// Returns how many virtual stages a pipeline stage has.
std::int64_t MegatronReader::layout(YamlNode& node) {
  const Place place = arguments_.place("pipeline-model-parallel-layout");
  const std::string text = arguments_.text("pipeline-model-parallel-layout");
  put(node, "pipeline_layout", text, place);
  try {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(parse_pipeline_layout(text).size()) / pp_);
  } catch (const std::invalid_argument& error) {
    throw InputError(place, "--pipeline-model-parallel-layout: " + std::string(error.what()));
  }
}

void MegatronReader::data_parallel() {
  YamlNode& node = section("parallelism");
  std::int64_t zero = arguments_.has("use-distributed-optimizer") ? 1 : 0;
  Place place = arguments_.place("use-distributed-optimizer");
  const std::string optimizer = arguments_.text("optimizer", "adam");
  if (optimizer != "adam" && optimizer != "muon" && optimizer != "dist_muon") fail("optimizer", "adam, muon or dist_muon");
  if (optimizer != "adam") put(section("training"), "optimizer", "muon", arguments_.place("optimizer"));
  if (optimizer == "dist_muon") {
    zero = 1;
    place = arguments_.place("optimizer");
  }
  arguments_.has("muon-use-nesterov");
  const std::string muon_tp = arguments_.text("muon-tp-mode", "blockwise");
  if (muon_tp != "blockwise" && muon_tp != "duplicated" && muon_tp != "distributed")
    fail("muon-tp-mode", "blockwise, duplicated or distributed");
  if (optimizer != "adam" && muon_tp == "blockwise" && arguments_.integer("tensor-model-parallel-size", 1) > 1)
    put(section("training"), "muon_tp", muon_tp, arguments_.place("optimizer"));
  if (arguments_.has("use-megatron-fsdp") || arguments_.has("data-parallel-sharding-strategy")) {
    const std::string strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const auto* const found = std::ranges::find(strategies, arguments_.text("data-parallel-sharding-strategy", "no_shard"));
    if (found == std::end(strategies))
      fail("data-parallel-sharding-strategy", "no_shard, optim, optim_grads or optim_grads_params");
    zero = found - strategies;
    place = arguments_.place("data-parallel-sharding-strategy");
  }
  if (arguments_.has("zero-stage")) {  // of Megatron-DeepSpeed
    zero = arguments_.integer("zero-stage", 0);
    place = arguments_.place("zero-stage");
  }
  if (arguments_.has("use-torch-fsdp2")) {
    zero = 3;
    place = arguments_.place("use-torch-fsdp2");
    put(node, "reshard_after_forward", !arguments_.has("torch-fsdp2-no-reshard-after-forward"), place);
  }
  put(node, "zero", zero, place);
  shard_group(node);
  YamlNode& training = section("training");
  set(section_of(training, "overlap"), name_of(Axis::dp), "overlap-grad-reduce");
  for (const char* follows : {"overlap-param-gather", "use-megatron-fsdp"}) arguments_.has(follows);
  if (arguments_.has("ddp-bucket-size"))
    put(training, "bucket_MB", static_cast<double>(positive("ddp-bucket-size", 1)) * static_cast<double>(gradient_bytes()) / 1e6,
        arguments_.place("ddp-bucket-size"));
}

void MegatronReader::shard_group(YamlNode& node) {
  const char* const name = "num-distributed-optimizer-instances";
  const std::int64_t copies = positive(name, 1);
  if (copies == 1) return;
  if (world() == 0)
    throw InputError(arguments_.place(name),
                     "--" + std::string(name) + " divides a number of ranks that is not known, expected the number of GPUs");
  put(node, "hsdp", std::max<std::int64_t>(2, data_parallel_size() * cp_ / copies), arguments_.place(name));
}

}  // namespace tandem::scenarios
