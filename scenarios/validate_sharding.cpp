#include <string>

#include "scenarios/nearest.h"
#include "scenarios/validate.h"

namespace tandem {
namespace {

void check_heads(const ModelSpec& model, const YamlNode& document) {
  if (model.heads % model.kv_heads != 0)
    refuse(document, {"model.kv_heads", "model.heads"},
           "kv_heads " + std::to_string(model.kv_heads) + " does not divide heads " + std::to_string(model.heads) +
               "; nearest that do: " + joined(nearest_divisors(model.heads, model.kv_heads)));
  if (model.rotary && model.head_dim % 2 != 0)
    refuse(document, {"model.head_dim", "model.heads"},
           "head_dim " + std::to_string(model.head_dim) +
               " is odd, and rotary positions turn pairs; nearest even ones: " + joined(nearest_multiples(2, model.head_dim)));
}

void check_split(const YamlNode& document, std::int64_t tp, std::int64_t size, const std::string& field) {
  if (size % tp == 0) return;
  refuse(document, {"parallelism.tp", "model." + field},
         "tp " + std::to_string(tp) + " does not divide " + std::to_string(size) + " " + field +
             "; nearest that do: " + joined(nearest_divisors(size, tp)));
}

void check_key_value_heads(const YamlNode& document, std::int64_t tp, std::int64_t kv_heads) {
  if (tp > kv_heads && tp % kv_heads == 0)
    refuse(document, {"parallelism.tp", "model.kv_heads"},
           "tp " + std::to_string(tp) + " above kv_heads " + std::to_string(kv_heads) +
               " shares key-value heads between ranks, which is not lowered yet; supported: tp up to " +
               std::to_string(kv_heads));
  check_split(document, tp, kv_heads, "kv_heads");
}

}  // namespace

void validate_sharding(const Scenario& scenario, const YamlNode& document) {
  const ModelSpec& model = scenario.model;
  const std::int64_t tp = scenario.parallelism.tp;
  const std::int64_t sequence = scenario.training.sequence;
  check_heads(model, document);
  check_split(document, tp, model.heads, "heads");
  check_key_value_heads(document, tp, model.kv_heads);
  check_split(document, tp, model.ffn, "ffn");
  if (model.vocab % tp != 0)
    refuse(document, {"model.vocab", "parallelism.tp"},
           "vocab " + std::to_string(model.vocab) + " is not a multiple of tp " + std::to_string(tp) +
               "; nearest that are: " + joined(nearest_multiples(tp, model.vocab)));
  if (scenario.parallelism.sp && sequence % tp != 0)
    refuse(document, {"training.sequence", "parallelism.tp"},
           "sequence " + std::to_string(sequence) + " is not a multiple of tp " + std::to_string(tp) +
               ", which sp needs; nearest that are: " + joined(nearest_multiples(tp, sequence)));
}

}  // namespace tandem
