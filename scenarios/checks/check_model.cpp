#include <string>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"

namespace tandem::scenarios {
namespace {

constexpr Rule heads_have_a_width{.holds = [](const Scenario& s) { return s.model.head_dim > 0; },
                                  .objection = [](const Scenario& s) -> Objection {
                                    return {{"model.heads", "model.hidden"},
                                            named("heads", s.model.heads) + " does not divide " +
                                                named("hidden", s.model.hidden) + ", expected that or model.head_dim"};
                                  }};

// Multi-head latent attention.

std::optional<Objection> find_part_without_latent(const Scenario& s) {
  const MlaSpec& mla = s.model.mla;
  if (mla.enabled()) return {};
  const std::pair<const char*, std::int64_t> parts[] = {{"model.mla.q_rank", mla.q_rank},
                                                        {"model.mla.rope_dim", mla.rope_dim},
                                                        {"model.mla.nope_dim", mla.nope_dim},
                                                        {"model.mla.v_dim", mla.v_dim}};
  for (const auto& [field, width] : parts)
    if (width > 0) return Objection{{field}, std::string(field) + " without a kv_rank, expected that, too"};
  return {};
}

constexpr Rule latent_rotates_pairs{
    .holds = [](const Scenario& s) { return s.model.mla.rope_dim % 2 == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t width = s.model.mla.rope_dim;
      return {{"model.mla.rope_dim"},
              named("rope_dim", width) +
                  " is odd, and rotary positions turn pairs; nearest even ones: " + joined(nearest_multiples(2, width))};
    }};

constexpr Rule latent_attention_is_rotary{
    .holds = [](const Scenario& s) { return !s.model.mla.enabled() || s.model.rotary; },
    .objection = [](const Scenario&) -> Objection {
      return {{"model.rotary", "model.mla"}, "rotary false with latent attention, expected true: it has no learned positions"};
    }};

constexpr Rule latent_heads_have_keys{
    .holds = [](const Scenario& s) { return !s.model.mla.enabled() || s.model.kv_heads == s.model.heads; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.kv_heads", "model.heads", "model.mla"},
              named("kv_heads", s.model.kv_heads) + " with latent attention, expected heads, " + std::to_string(s.model.heads) +
                  ": every head has a key of its own"};
    }};

constexpr Rule biased_layers_are_dense{
    .holds = [](const Scenario& s) { return !s.model.linear_bias || (s.model.moe.experts == 0 && !s.model.mla.enabled()); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.mla.enabled() ? "model.mla" : "model.moe.experts";
      return {{"model.linear_bias", field}, "model.linear_bias is not lowered with " + field + ", expected false"};
    }};

// Grouped and rotated heads.

constexpr Rule kv_heads_divide_heads{
    .holds = [](const Scenario& s) { return s.model.heads % s.model.kv_heads == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.kv_heads", "model.heads"},
              named("kv_heads", s.model.kv_heads) + " does not divide " + named("heads", s.model.heads) +
                  "; nearest that do: " + joined(nearest_divisors(s.model.heads, s.model.kv_heads))};
    }};

constexpr Rule rotated_heads_are_even{
    .holds = [](const Scenario& s) { return !s.model.rotary || s.model.mla.enabled() || s.model.head_dim % 2 == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.head_dim", "model.heads"},
              named("head_dim", s.model.head_dim) + " is odd, and rotary positions turn pairs; nearest even ones: " +
                  joined(nearest_multiples(2, s.model.head_dim))};
    }};

constexpr Rule rules_of_model[] = {
    heads_have_a_width,    biased_layers_are_dense,    rule_of<find_part_without_latent>,
    latent_rotates_pairs,  latent_attention_is_rotary, latent_heads_have_keys,
    kv_heads_divide_heads, rotated_heads_are_even,
};

}  // namespace

std::span<const Rule> model_rules() { return rules_of_model; }

}  // namespace tandem::scenarios
