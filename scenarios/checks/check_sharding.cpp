#include <numeric>
#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"

namespace tandem::scenarios {
namespace {

void check_heads(const ModelSpec& model, const YamlNode& document) {
  if (model.heads % model.kv_heads != 0)
    refuse(document, {"model.kv_heads", "model.heads"},
           "kv_heads " + std::to_string(model.kv_heads) + " does not divide heads " + std::to_string(model.heads) +
               "; nearest that do: " + joined(nearest_divisors(model.heads, model.kv_heads)));
  if (model.rotary && !model.mla.enabled() && model.head_dim % 2 != 0)
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
  if (tp <= kv_heads) return check_split(document, tp, kv_heads, "kv_heads");
  if (tp % kv_heads == 0) return;
  refuse(document, {"parallelism.tp", "model.kv_heads"},
         "tp " + std::to_string(tp) + " above kv_heads " + std::to_string(kv_heads) +
             " is not a multiple of it, so that equally many ranks could hold each head; nearest that are: " +
             joined(nearest_multiples(kv_heads, tp)));
}

std::string with_nearest(const std::string& sentence, std::int64_t unit, std::int64_t size) {
  return sentence + "; nearest that are: " + joined(nearest_multiples(unit, size));
}

void check_context(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t sequence = scenario.training.sequence;
  const std::string found = "sequence " + std::to_string(sequence) + " is not a multiple of ";
  const std::string cp = "cp " + std::to_string(p.cp);
  const bool zigzag = p.cp > 1 && p.cp_layout == CpLayout::zigzag;
  if (zigzag && p.cp_method == CpMethod::ulysses)
    refuse(document, {"parallelism.cp_layout", "parallelism.cp_method"},
           "zigzag chunks with ulysses, which gives every rank whole sequences of some heads; expected cp_layout contiguous");
  if (zigzag && sequence % (2 * p.cp) != 0)
    refuse(document, {"training.sequence", "parallelism.cp"},
           with_nearest(found + "2 * " + cp + ", as zigzag's two chunks per rank need", 2 * p.cp, sequence));
  if (sequence % p.cp != 0) refuse(document, {"training.sequence", "parallelism.cp"}, with_nearest(found + cp, p.cp, sequence));
  const bool experts = scenario.model.moe.experts > 0;
  if ((p.sp || experts) && sequence % (p.cp * p.tp) != 0)
    refuse(document, {"training.sequence", "parallelism.tp"},
           with_nearest(found + (p.cp > 1 ? cp + " * " : "") + "tp " + std::to_string(p.tp) +
                            (p.sp ? ", which sp needs" : ", whose ranks each route a run of the tokens to the experts"),
                        (zigzag ? std::lcm(2 * p.cp, p.cp * p.tp) : p.cp * p.tp), sequence));
}

void check_overlap(const Scenario& scenario, const YamlNode& document) {
  if (!scenario.training.overlap_tp || scenario.parallelism.sp || scenario.parallelism.tp == 1) return;
  refuse(document, {"training.overlap.tp", "parallelism.sp"},
         "overlap.tp without sp, whose all-gathers and reduce-scatters are what runs beside the GEMMs; expected "
         "parallelism.sp true");
}

/// `heads` of each tensor-parallel rank.
void check_ulysses(const Scenario& scenario, const YamlNode& document, std::int64_t heads, const std::string& field) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.cp == 1 || p.cp_method != CpMethod::ulysses || heads % p.cp == 0) return;
  refuse(document, {"parallelism.cp", "parallelism.cp_method", "model." + field},
         "cp " + std::to_string(p.cp) + " does not divide the " + std::to_string(heads) + " " + field +
             " of a tensor-parallel rank, which ulysses deals out; nearest that do: " + joined(nearest_divisors(heads, p.cp)));
}

}  // namespace

void validate_sharding(const Scenario& scenario, const YamlNode& document) {
  const ModelSpec& model = scenario.model;
  const std::int64_t tp = scenario.parallelism.tp;
  check_heads(model, document);
  check_split(document, tp, model.heads, "heads");
  check_key_value_heads(document, tp, model.kv_heads);
  check_split(document, tp, model.ffn, "ffn");
  if (model.vocab % tp != 0)
    refuse(document, {"model.vocab", "parallelism.tp"},
           "vocab " + std::to_string(model.vocab) + " is not a multiple of tp " + std::to_string(tp) +
               "; nearest that are: " + joined(nearest_multiples(tp, model.vocab)));
  check_context(scenario, document);
  check_overlap(scenario, document);
  check_ulysses(scenario, document, model.heads / tp, "heads");
  check_ulysses(scenario, document, model.kv_heads * scenario.kv_replicas() / tp, "kv_heads");
}

}  // namespace tandem::scenarios
