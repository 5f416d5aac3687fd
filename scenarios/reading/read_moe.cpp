#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// `uniform`, a list of shares, or {zipf: exponent}.
ExpertLoad read_load(const Reader& moe) {
  ExpertLoad load;
  const YamlNode& node = moe.child("load");
  if (node.kind == YamlNode::Kind::sequence) {
    load.shares = moe.numbers("load", {0, 1e12}, {});
  } else if (node.kind == YamlNode::Kind::mapping) {
    load.zipf = Reader(node, "model.moe.load", {"zipf"}).number("zipf", {0, 100});
  } else if (moe.has("load") && (node.kind != YamlNode::Kind::scalar || node.text != "uniform")) {
    moe.fail("load",
             "model.moe.load is " + describe(node) + ", expected uniform, a list of shares by expert, or {zipf: exponent}");
  }
  return load;
}

}  // namespace

MoeSpec read_moe(const YamlNode& node, std::int64_t dense_ffn) {
  const Reader moe(node, "model.moe",
                   {"experts",
                    "top_k",
                    "routing",
                    "ffn",
                    "shared_experts",
                    "first_dense_layers",
                    "every",
                    "capacity_factor",
                    "pad_to_capacity",
                    "node_limit",
                    "load",
                    "balance_loss",
                    "balance_scope",
                    "latent",
                    "groups",
                    "score_function",
                    "pre_softmax",
                    "scaling_factor",
                    "expert_bias",
                    "bias_update_rate",
                    "linear_bias",
                    "router_bias",
                    "shared_gate",
                    "best_of_group",
                    "hash_layers"});
  MoeSpec spec;
  spec.experts = moe.integer("experts", {0, 65'536}, 0);
  if (spec.experts == 0) return spec;
  spec.top_k = moe.integer("top_k", {1, 1'024});
  spec.routing = moe.choice<Routing>("routing", choices(routing_names), Routing::top_k);
  spec.ffn = moe.integer("ffn", {1, 4'194'304}, dense_ffn);
  spec.latent = moe.integer("latent", {0, 1'048'576}, 0);
  spec.shared_experts = moe.integer("shared_experts", {0, 1'024}, 0);
  spec.first_dense_layers = moe.integer("first_dense_layers", {0, max_layers}, 0);
  spec.every = moe.integer("every", {1, max_layers}, 1);
  spec.capacity_factor = moe.number("capacity_factor", {0, 1e6}, 0.0);
  spec.pad_to_capacity = moe.boolean("pad_to_capacity", true);
  spec.node_limit = moe.integer("node_limit", {0, 65'536}, 0);
  spec.load = read_load(moe);
  spec.balance_loss = moe.number("balance_loss", {0, 1e6}, spec.balance_loss);
  spec.balance_scope = moe.choice<BalanceScope>("balance_scope", choices(balance_scope_names), BalanceScope::micro_batch);
  spec.groups = moe.integer("groups", {0, 65'536}, 0);
  spec.score_function = moe.choice<ScoreFunction>("score_function", choices(score_function_names), ScoreFunction::softmax);
  spec.pre_softmax = moe.boolean("pre_softmax", false);
  spec.scaling_factor = moe.number("scaling_factor", {1e-6, 1e6}, spec.scaling_factor);
  spec.expert_bias = moe.boolean("expert_bias", false);
  spec.bias_update_rate = moe.number("bias_update_rate", {0, 1}, spec.bias_update_rate);
  spec.linear_bias = moe.boolean("linear_bias", false);
  spec.router_bias = moe.boolean("router_bias", false);
  spec.shared_gate = moe.boolean("shared_gate", false);
  spec.best_of_group = moe.integer("best_of_group", {0, 1'024}, 0);
  spec.hash_layers = moe.integer("hash_layers", {0, max_layers}, 0);
  return spec;
}

namespace {

YamlNode load_section(const ExpertLoad& load) {
  if (load.shares.empty()) {
    YamlNode node = make_node(YamlNode::Kind::mapping, {});
    put(node, "zipf", load.zipf);
    return node;
  }
  YamlNode list = make_node(YamlNode::Kind::sequence, {});
  for (const double share : load.shares) {
    YamlNode item = make_node(YamlNode::Kind::mapping, {});
    put(item, "share", share);
    list.items.push_back(*item.find("share"));
  }
  return list;
}

}  // namespace

YamlNode write_moe(const MoeSpec& moe) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "experts", moe.experts);
  put(node, "top_k", moe.top_k);
  put(node, "routing", name_in(routing_names, moe.routing));
  put(node, "ffn", moe.ffn);
  if (moe.latent > 0) put(node, "latent", moe.latent);
  put(node, "shared_experts", moe.shared_experts);
  put(node, "first_dense_layers", moe.first_dense_layers);
  put(node, "every", moe.every);
  put(node, "capacity_factor", moe.capacity_factor);
  put(node, "pad_to_capacity", moe.pad_to_capacity);
  put(node, "node_limit", moe.node_limit);
  put(node, "load", load_section(moe.load));
  put(node, "balance_loss", moe.balance_loss);
  if (moe.balance_scope != BalanceScope::micro_batch) put(node, "balance_scope", name_in(balance_scope_names, moe.balance_scope));
  if (moe.groups > 0) put(node, "groups", moe.groups);
  if (moe.score_function != ScoreFunction::softmax)
    put(node, "score_function", name_in(score_function_names, moe.score_function));
  if (moe.pre_softmax) put(node, "pre_softmax", true);
  if (moe.scaling_factor != 1) put(node, "scaling_factor", moe.scaling_factor);
  if (moe.expert_bias) put(node, "expert_bias", true);
  if (moe.expert_bias) put(node, "bias_update_rate", moe.bias_update_rate);
  if (moe.linear_bias) put(node, "linear_bias", true);
  if (moe.router_bias) put(node, "router_bias", true);
  if (moe.shared_gate) put(node, "shared_gate", true);
  if (moe.best_of_group > 0) put(node, "best_of_group", moe.best_of_group);
  if (moe.hash_layers > 0) put(node, "hash_layers", moe.hash_layers);
  return node;
}

}  // namespace tandem::scenarios
