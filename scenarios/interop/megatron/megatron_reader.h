#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "scenarios/interop/interop.h"
#include "scenarios/interop/megatron/program_arguments.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {

/// Makes a scenario of Megatron-LM's arguments. Names and defaults are those of megatron/training/arguments.py, as of November
/// 2025. Parts by file: model, vocabulary, attention, experts, mesh, training, recompute.
class MegatronReader {
 public:
  /// `gpus`: how many the user states; 0: the launcher does, or nobody.
  MegatronReader(Launch launch, const std::string& file, std::int64_t gpus);
  Imported all();

 private:
  ProgramArguments arguments_;
  std::string file_;
  std::int64_t gpus_;  ///< that the user states; 0: the launcher does, or nobody
  Imported out_;
  std::int64_t layers_ = 0, hidden_ = 0, heads_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, vpp_ = 1;

  // from_megatron.cpp
  YamlNode& section(const char* name) { return section_of(out_.document, name, {.file = file_}); }
  [[noreturn]] void fail(const std::string& name, const std::string& expected);
  void set(YamlNode& to, std::string_view key, const char* name) { put(to, key, arguments_.has(name), arguments_.place(name)); }
  void note(const std::string& name, const std::string& sentence);
  std::int64_t positive(const char* name, std::int64_t fallback);
  /// Of the model or the training, where only the user can tell.
  void miss(const std::string& field, const std::string& sentence);
  /// GPUs in all, from the user or the launcher; 0 where neither tells.
  std::int64_t world() const { return gpus_ > 0 ? gpus_ : arguments_.launch().gpus; }
  /// Data-parallel ranks, where the number of GPUs is known.
  std::int64_t data_parallel_size() const { return world() / (tp_ * pp_ * cp_); }
  void check_program();
  void gpus();
  void leftovers();
  /// slime and its like set some of what others state.
  bool is_of_slime();

  // megatron_model.cpp
  void sizes();
  const char* hybrid_argument();
  std::string hybrid_pattern();
  void layers_that_differ(YamlNode& model);
  void model();
  void activation(YamlNode& node);
  void positions(YamlNode& node);

  // megatron_vocabulary.cpp
  void vocabulary(YamlNode& node);
  std::int64_t padded(std::int64_t tokens, const std::string& what);
  bool patched_vocabulary(YamlNode& node);

  // megatron_attention.cpp
  void windows(YamlNode& node);
  void indexer(YamlNode& model);
  void attention();
  void dropout(const std::string& backend);

  // megatron_experts.cpp
  void experts();
  void balance(YamlNode& moe);
  void dispatcher(YamlNode& parallelism);
  void router(YamlNode& moe);
  void layers_with_experts(YamlNode& moe);
  void shared_experts(YamlNode& moe);

  // megatron_mesh.cpp
  std::int64_t dealt_ranks();
  void mesh();
  void pipeline();
  std::int64_t layout(YamlNode& node);
  void data_parallel();
  void shard_group(YamlNode& node);

  // megatron_training.cpp
  std::string gradient_type();
  Bytes gradient_bytes() { return gradient_type() == "fp32" ? 4 : 2; }
  void training();
  void batch(YamlNode& node);
  void precision(YamlNode& node);
  void cross_entropy(YamlNode& node);
  void optimizer_states(YamlNode& node);
  void offload(YamlNode& node);
  std::string fp8_recipe();
  std::string cuda_graph();

  // megatron_recompute.cpp
  void recompute();
  void modules(YamlNode& node, const Place& place);
};

}  // namespace tandem::scenarios
