#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/megatron/megatron_fields.h"

namespace tandem::scenarios {

/// Collects what a configuration in Megatron-Core's words says, as arguments of pretrain_gpt.py, which then are read as those
/// are. Sentences and lists of what was ignored name the fields of the file.
class MegatronSettings {
 public:
  explicit MegatronSettings(ForeignTree& tree) : tree_(tree) {}

  /// Takes those of the fields that stand below `section`; a later section goes before an earlier one.
  void take(const std::string& section, std::span<const MegatronField> fields);
  void set(std::string_view argument, std::vector<std::string> values, const std::string& path);
  void flag(std::string_view argument, const std::string& path, bool stands = true);

  /// Takes the scalar at `path`, where there is one.
  void take_value(std::string_view argument, const std::string& path);

  /// Takes a whole TransformerConfig: the fields whose values are scalars, and those that mean several arguments or lists.
  void take_transformer(const std::string& section);
  /// Takes how a model lies on ranks, which some programs keep apart from the model.
  void take_parallel(const std::string& section);
  /// Takes the formats of numbers: each field from the first of `sections` that states it. `default_recipe`: fp8's.
  void take_precision(std::span<const std::string> sections, const std::string& gradients, const std::string& default_recipe);
  void take_optimizer(const std::string& section);
  void take_data_parallel(const std::string& section);
  void take_fsdp(const std::string& section);
  void take_batch(const std::string& section);

  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

  /// Has the arguments read, and fills in what they have no word for.
  Imported read(std::int64_t gpus);

 private:
  /// An argument and the field that it comes from.
  struct Setting {
    std::string argument, path;
    std::vector<std::string> values;
    Place place;
  };
  ForeignTree& tree_;
  std::vector<Setting> settings_;
  std::vector<std::string> notes_;
  std::vector<std::string> layer_types_;
  std::string layer_types_path_, section_;

  bool is_set(std::string_view argument) const;
  void remove(std::string_view argument);
  void activation(const std::string& section);
  void attention(const std::string& section);
  void window(const std::string& section);
  void linear_attention(const std::string& section);
  void biases(YamlNode& model);
  void experts(const std::string& section);
  void recompute(const std::string& section);
  void graphs(const std::string& section);
  void layout(const std::string& section);
  std::string in_words_of_the_file(std::string sentence) const;
};

/// The name that a value has as an argument: of torch.bfloat16, or the mapping with it that Hydra writes, "bf16".
std::string type_name(const YamlNode& node);

/// The last part of a name such as torch.nn.functional.silu, wherever the node holds it: as text or as `_target_`.
std::string target_name(const YamlNode& node);

}  // namespace tandem::scenarios
