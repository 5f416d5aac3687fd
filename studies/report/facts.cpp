#include "studies/report/facts.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;
using Facts = std::vector<std::pair<std::string, std::string>>;

Json group(const std::string& name, const Facts& facts) {
  Json list = Json::array();
  for (const auto& [key, value] : facts) list.push_back(Json::array({key, value}));
  return {{"name", name}, {"facts", list}};
}

std::string describe(const RecomputeSpec& recompute) {
  std::string text = recompute.every == 1 ? "whole layers" : "";
  if (recompute.every > 1) text = fmt::format("every {}th layer", recompute.every);
  for (const auto& [chosen, name] :
       {std::pair{recompute.norm, "norms"}, std::pair{recompute.activation, "activations"},
        std::pair{recompute.attention, "attention"}, std::pair{recompute.mlp && recompute.mlp_every == 1, "MLP"},
        std::pair{recompute.mlp && recompute.mlp_every == 2, "every second MLP"},
        std::pair{recompute.mla_up, "latent up-projections"}}) {
    if (chosen) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

Facts facts_of_model(const ModelSpec& m) {
  Facts facts{{"layers", fmt::format("{}", m.layers)},
              {"hidden", fmt::format("{}", m.hidden)},
              {"heads", m.kv_heads == m.heads ? fmt::format("{} of {}", m.heads, m.head_dim)
                                              : fmt::format("{} of {}, {} for keys and values", m.heads, m.head_dim, m.kv_heads)},
              {"ffn", fmt::format("{}{}", m.ffn, m.gated ? ", gated" : "")},
              {"vocabulary", fmt::format("{}{}", m.vocab, m.tied_embeddings ? ", tied" : "")}};
  if (m.indexer.enabled())
    facts.emplace_back("sparse attention",
                       fmt::format("{} keys, chosen by {} heads of {}", m.indexer.top_k, m.indexer.heads, m.indexer.head_dim));
  if (m.mla.enabled()) facts.emplace_back("latent attention", fmt::format("q {}, kv {}", m.mla.q_rank, m.mla.kv_rank));
  if (m.moe.experts > 0) {
    const std::string choice = m.moe.routing == scenarios::Routing::expert_choice ? "choosing tokens, mean" : "top";
    facts.emplace_back("experts", fmt::format("{} of {}, {} {}", m.moe.experts, m.moe.ffn, choice, m.moe.top_k));
    if (m.moe.capacity_factor > 0) facts.emplace_back("capacity factor", fmt::format("{:g}", m.moe.capacity_factor));
    if (m.moe.shared_experts > 0) facts.emplace_back("shared experts", fmt::format("{}", m.moe.shared_experts));
    if (m.moe.first_dense_layers > 0) facts.emplace_back("dense layers first", fmt::format("{}", m.moe.first_dense_layers));
    if (m.moe.every > 1) facts.emplace_back("experts in every", fmt::format("{}th layer", m.moe.every));
  }
  if (m.mtp_depth > 0) facts.emplace_back("further tokens predicted", fmt::format("{}", m.mtp_depth));
  return facts;
}

Facts facts_of_parallelism(const ParallelismSpec& p) {
  Facts facts;
  const auto size = [&](std::string_view name, std::int64_t extent, const std::string& more = {}) {
    if (extent > 1) facts.emplace_back(std::string(name), fmt::format("{}{}", extent, more));
  };
  size(name_of(Axis::tp), p.tp, p.sp ? ", sequence parallel" : "");
  size(name_of(Axis::cp), p.cp);
  size(name_of(Axis::ep), p.ep, p.own_expert_axis ? ", an axis of its own" : "");
  size("etp", p.etp);
  size(name_of(Axis::pp), p.pp, p.vpp > 1 ? fmt::format(", {} chunks per stage", p.vpp) : "");
  if (!p.pipeline_layout.empty()) facts.emplace_back("pipeline layout", layout_text(p.pipeline_layout));
  size(name_of(Axis::dp), p.dp);
  facts.emplace_back("ZeRO", fmt::format("{}{}", p.zero, p.hsdp > 0 ? fmt::format(", slices over {}", p.hsdp) : ""));
  return facts;
}

Facts facts_of_training(const Scenario& s) {
  const TrainingSpec& t = s.training;
  Facts facts{{"sequence", fmt::format("{}", t.sequence)},
              {"global batch", fmt::format("{} sequences", t.global_batch)},
              {"micro-batch", fmt::format("{}, {} per step", t.micro_batch, t.micro_batches(s.parallelism))},
              {"precision", std::string(name_of(t.precision))},
              {"schedule", std::string(name_of(t.schedule))},
              {"recompute", describe(t.recompute)}};
  if (t.local_steps())
    facts.emplace_back("weights averaged every", fmt::format("{} steps; drawn is a simulated step that averages", t.sync_every));
  if (t.grad_compression > 1) facts.emplace_back("gradients compressed", fmt::format("{} times", t.grad_compression));
  if (const CompressorSpec& compressor = t.compressor; compressor.keeps_residuals()) {
    std::string how(name_in(compression_method_names, compressor.method));
    if (compressor.method == CompressionMethod::top_k) how += fmt::format(", one of {:g}", compressor.ratio);
    if (compressor.method == CompressionMethod::powersgd) how += fmt::format(", rank {}", compressor.rank);
    facts.emplace_back("gradients compressed", how);
  }
  return facts;
}

Facts facts_of_cluster(const Scenario& s) {
  const ClusterSpec& c = s.cluster;
  Facts facts{{"GPUs", fmt::format("{} {}", c.gpus, c.gpu.name)},
              {"node", fmt::format("{} GPUs, {:g} GB/s {} each way", c.gpus_per_node, c.nvlink_GBps,
                                   c.node_links == NodeLinks::mesh ? "in a mesh" : "NVLink")}};
  if (c.gpus > c.gpus_per_node)
    facts.emplace_back("network", fmt::format("{} NICs of {:g} Gbit/s a node", c.nics_per_node, c.nic_gbps));
  for (const SlowGpu& slow : s.slow_gpus)
    facts.emplace_back("slow GPU", fmt::format("rank {} at {:g} of its speed", slow.rank, slow.factor));
  if (!c.link_faults.empty()) facts.emplace_back("slow or dead links", fmt::format("{}", c.link_faults.size()));
  return facts;
}

}  // namespace

Json facts_of(const Scenario& scenario) {
  return Json::array({group("model", facts_of_model(scenario.model)),
                      group("parallelism", facts_of_parallelism(scenario.parallelism)),
                      group("training", facts_of_training(scenario)), group("cluster", facts_of_cluster(scenario))});
}

}  // namespace tandem::studies
