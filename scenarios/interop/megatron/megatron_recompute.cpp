#include <algorithm>
#include <sstream>
#include <utility>

#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_reader.h"

namespace tandem::scenarios {

void MegatronReader::recompute() {
  YamlNode& node = section("training");
  const std::string granularity = arguments_.text("recompute-granularity", arguments_.has("checkpoint-activations")  ? "full"
                                                                           : arguments_.has("recompute-activations") ? "selective"
                                                                                                                     : "none");
  const Place place = arguments_.place("recompute-granularity");
  for (const char* name : {"recompute-activations", "recompute-method", "recompute-num-layers", "recompute-modules"})
    arguments_.has(name);
  if (granularity == "none") return put(node, "recompute", "none", place);
  if (granularity == "selective") return modules(node, place);
  if (granularity != "full") fail("recompute-granularity", "selective or full");
  put(node, "recompute", "full", place);
  const std::int64_t count = positive("recompute-num-layers", 1);
  if (arguments_.text("recompute-method", "uniform") != "block") {
    if (count > 1) put(node, "recompute_segment", count, arguments_.place("recompute-num-layers"));
    return;
  }
  const std::int64_t in_chunk = std::max<std::int64_t>(1, layers_ / (pp_ * vpp_));
  if (count < in_chunk) put(node, "recompute_every", divide_up(in_chunk, count), arguments_.place("recompute-num-layers"));
}

void MegatronReader::modules(YamlNode& node, const Place& place) {
  constexpr std::pair<std::string_view, const char*> names[] = {
      {"core_attn", "attention"}, {"layernorm", "norm"}, {"moe_act", "activation"},
      {"mla_up_proj", "mla-up"},  {"mlp", "mlp"},        {"moe", "mlp"},
      {"shared_experts", "mlp"}};
  std::vector<std::string> stated = arguments_.values("recompute-modules");
  if (stated.size() == 1 && stated[0].find(' ') != std::string::npos) {  // in quotes
    std::istringstream words(std::exchange(stated, {})[0]);
    for (std::string word; words >> word;) stated.push_back(word);
  }
  if (stated.empty()) stated.emplace_back("core_attn");
  YamlNode list = make_node(YamlNode::Kind::sequence, place);
  for (const std::string& module : stated) {
    const auto* const found = std::ranges::find(names, module, [](const auto& entry) { return entry.first; });
    if (found == std::end(names))
      throw InputError(arguments_.place("recompute-modules"),
                       "there is no module " + excerpt(module) +
                           " to recompute, expected core_attn, layernorm, moe_act, mla_up_proj, mlp, moe or shared_experts");
    if (std::ranges::find(list.items, found->second, &YamlNode::text) == list.items.end())
      list.items.push_back(make_scalar(found->second, arguments_.place("recompute-modules")));
  }
  put(node, "recompute", std::move(list));
}

}  // namespace tandem::scenarios
