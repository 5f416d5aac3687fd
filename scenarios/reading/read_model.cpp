#include <algorithm>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

MlaSpec read_mla(const Reader& model, const ModelSpec& spec) {
  const Range<std::int64_t> width{0, 1'048'576}, needed{1, 1'048'576};
  const Reader mla(model.child("mla"), "model.mla", {"q_rank", "kv_rank", "rope_dim", "nope_dim", "v_dim"});
  MlaSpec latent;
  latent.q_rank = mla.integer("q_rank", width, 0);
  latent.kv_rank = mla.integer("kv_rank", width, 0);
  if (!latent.enabled()) {
    for (const char* key : {"q_rank", "rope_dim", "nope_dim", "v_dim"})
      if (mla.integer(key, width, 0) > 0) mla.fail(key, mla.full_name(key) + " without a kv_rank, expected that, too");
    return latent;
  }
  latent.rope_dim = mla.integer("rope_dim", needed);
  latent.nope_dim = mla.integer("nope_dim", needed);
  latent.v_dim = mla.integer("v_dim", needed);
  if (latent.rope_dim % 2 != 0)
    mla.fail("rope_dim",
             "rope_dim " + std::to_string(latent.rope_dim) +
                 " is odd, and rotary positions turn pairs; nearest even ones: " + joined(nearest_multiples(2, latent.rope_dim)));
  if (!spec.rotary) model.fail("rotary", "rotary false with latent attention, expected true: it has no learned positions");
  if (spec.kv_heads != spec.heads)
    model.fail("kv_heads", "kv_heads " + std::to_string(spec.kv_heads) + " with latent attention, expected heads, " +
                               std::to_string(spec.heads) + ": every head has a key of its own");
  return latent;
}

}  // namespace

ModelSpec read_model(const YamlNode& node) {
  const Reader model(node, "model",
                     {"name", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "vocab", "norm",
                      "tied_embeddings", "rotary", "max_positions", "rotary_base", "moe", "mla", "mtp_depth"});
  ModelSpec spec;
  spec.name = model.text("name", "inline");
  spec.layers = model.integer("layers", {1, 10'000});
  spec.hidden = model.integer("hidden", {1, 1'048'576});
  spec.heads = model.integer("heads", {1, 65'536});
  spec.kv_heads = model.integer("kv_heads", {1, 65'536}, spec.heads);
  if (!model.has("head_dim") && !model.has("mla") && spec.hidden % spec.heads != 0)
    model.fail("heads", "heads " + std::to_string(spec.heads) + " does not divide hidden " + std::to_string(spec.hidden) +
                            ", expected that or model.head_dim");
  spec.head_dim = model.integer("head_dim", {1, 65'536}, std::max<std::int64_t>(1, spec.hidden / spec.heads));
  spec.ffn = model.integer("ffn", {1, 4'194'304});
  spec.gated = model.boolean("gated", true);
  spec.vocab = model.integer("vocab", {2, 16'777'216});
  spec.norm = model.choice<NormKind>("norm", choices(norm_names), NormKind::rms);
  spec.tied_embeddings = model.boolean("tied_embeddings", false);
  spec.rotary = model.boolean("rotary", true);
  spec.rotary_base = model.number("rotary_base", {1, 1e12}, spec.rotary_base);
  const Range<std::int64_t> positions{1, 16'777'216};
  spec.max_positions = spec.rotary ? model.integer("max_positions", positions, 0) : model.integer("max_positions", positions);
  spec.mtp_depth = model.integer("mtp_depth", {0, 64}, 0);
  spec.moe = read_moe(model.child("moe"), spec.ffn);
  spec.mla = read_mla(model, spec);
  if (spec.mla.enabled()) spec.head_dim = spec.mla.qk_dim();
  return spec;
}

}  // namespace tandem::scenarios
