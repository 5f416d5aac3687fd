#include "scenarios/interop/megatron/precision_recipes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

struct PrecisionRecipe {
  std::string_view name;    ///< behind bf16 or fp16
  std::string_view fp8;     ///< empty: none
  std::string_view recipe;  ///< of fp8 or fp4
  std::int64_t ends = 0;    ///< layers at either end that stay in bf16
  bool gathers = false;     ///< fp8_param_gather
};

constexpr std::array precision_recipes{
    PrecisionRecipe{"_mixed", "", ""},
    PrecisionRecipe{"_with_fp8_delayed_scaling_mixed", "hybrid", "delayed", 0, true},
    PrecisionRecipe{"_with_fp8_current_scaling_mixed", "hybrid", "tensorwise", 1, true},
    PrecisionRecipe{"_with_fp8_subchannel_scaling_mixed", "hybrid", "blockwise", 0, false},
    PrecisionRecipe{"_with_mxfp8_mixed", "e4m3", "mxfp8", 0, true},
    PrecisionRecipe{"_with_nvfp4_mixed", "", "nvfp4", 0, false},
};

/// Of Nemotron-H and Nemotron Nano v2, which keep two layers at either end in bf16.
constexpr std::array<std::pair<std::string_view, PrecisionRecipe>, 2> model_recipes{
    {{"nemotron_h_bf16_with_fp8_current_scaling_mixed", {"", "hybrid", "tensorwise", 2, true}},
     {"nanov2_bf16_with_fp8_current_scaling_mixed", {"", "hybrid", "blockwise", 2, true}}}};

YamlNode fields_of(const PrecisionRecipe& recipe, bool half, const Place& place) {
  YamlNode fields = make_node(YamlNode::Kind::mapping, place);
  put(fields, half ? "fp16" : "bf16", true, place);
  put(fields, "grad_reduce_in_fp32", !half, place);
  const bool fp4 = recipe.recipe == "nvfp4";
  if (fp4) put(fields, "fp4", "e2m1", place);
  if (fp4) put(fields, "fp4_recipe", recipe.recipe, place);
  if (recipe.fp8.empty()) return fields;
  put(fields, "fp8", recipe.fp8, place);
  put(fields, "fp8_recipe", recipe.recipe, place);
  put(fields, "fp8_param_gather", recipe.gathers, place);
  if (recipe.ends == 0) return fields;
  put(fields, "first_last_layers_bf16", true, place);
  put(fields, "num_layers_at_start_in_bf16", recipe.ends, place);
  put(fields, "num_layers_at_end_in_bf16", recipe.ends, place);
  return fields;
}

}  // namespace

YamlNode precision_recipe(const YamlNode& name) {
  std::string plain = name.text;
  std::ranges::replace(plain, '-', '_');
  for (const auto& [whole, recipe] : model_recipes)
    if (plain == whole) return fields_of(recipe, false, name.place);
  std::vector<std::string> known;
  for (const std::string_view type : {"bf16", "fp16"})
    for (const PrecisionRecipe& recipe : precision_recipes) {
      known.push_back(std::string(type) + std::string(recipe.name));
      if (plain == known.back()) return fields_of(recipe, type == "fp16", name.place);
    }
  throw InputError(name.place, "there is no precision recipe " + excerpt(name.text) + suggestion(plain, known));
}

}  // namespace tandem::scenarios
