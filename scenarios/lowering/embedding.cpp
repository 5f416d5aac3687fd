#include "scenarios/lowering/embedding.h"

#include "scenarios/lowering/dropout.h"
#include "scenarios/lowering/hyper_connection.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/schedules/chunk_layout.h"

namespace tandem::scenarios {
namespace {

/// Looks up what `ids` says, row by row of `out`.
void look_up(Context& context, Tape& tape, ParameterId table, BufferId ids, BufferId out, std::string_view name) {
  const BufferId weights = context.parameters().weight(table);
  const EmbeddingAttributes attributes{context.shape_of(weights)[0] * context.sizes.tp_rank};
  context.kernel(OpKind::embedding, attributes, name, {ids, weights}, {out});
  tape.push([=, name = std::string(name)](Context& c, BufferId dout) {
    c.weight_gradient(table, [=](Context& w, BufferId gradient) {
      w.kernel(OpKind::embedding_backward, attributes, name, {ids, dout}, {}, {gradient});
    });
    return dout;
  });
}

BufferId look_up(Context& context, Tape& tape, ParameterId table, BufferId ids, std::string_view name) {
  const LocalSizes& n = context.sizes;
  const BufferId out = context.activation(Shape(n.sequence, n.batch, n.hidden));
  look_up(context, tape, table, ids, out, name);
  return out;
}

/// Times the model's factor, into `y`.
void scale_embedding(Context& context, Tape& tape, BufferId x, BufferId y, std::string_view name) {
  const ScaleAttributes factor{static_cast<float>(context.scenario.model.embedding_factor)};
  context.kernel(OpKind::scale, factor, name, {x}, {y});
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    c.kernel(OpKind::scale, factor, name, {dy}, {dx});
    return dx;
  });
}

bool scales_embedding(const Context& context) { return context.scenario.model.embedding_factor != 1; }

BufferId scale_embedding(Context& context, Tape& tape, BufferId x, std::string_view name) {
  if (!scales_embedding(context)) return x;
  const BufferId y = context.activation(context.shape_of(x));
  scale_embedding(context, tape, x, y, name);
  return y;
}

/// The first rows of a sequence, and the others.
struct ImageAndText {
  BufferId images, text;
};
ImageAndText apart(Context& context, BufferId rows, std::int64_t images) {
  const Shape shape = context.shape_of(rows);
  const std::int64_t width = shape.elements() / shape[0];
  Shape first = shape, others = shape;
  first.dims[0] = images;
  others.dims[0] = shape[0] - images;
  return {context.builder.view(rows, 0, first), context.builder.view(rows, images * width, others)};
}

/// The images' tokens from the encoder, and behind them those of the table, which alone the model's factor scales.
BufferId images_and_text(Context& context, Tape& tape, const EmbeddingParameters& weights, BufferId ids) {
  const LocalSizes& n = context.sizes;
  const std::int64_t images = context.scenario.model.encoder.tokens();
  const BufferId out = context.activation(Shape(n.sequence, n.batch, n.hidden));
  const ImageAndText rows = apart(context, out, images);
  Tape of_images, of_text;
  encode(context, of_images, *weights.encoder, rows.images);
  const BufferId ids_of_text = apart(context, ids, images).text;
  const BufferId text = scales_embedding(context) ? context.activation(context.shape_of(rows.text)) : rows.text;
  look_up(context, of_text, weights.tokens, ids_of_text, text, "embedding");
  if (text != rows.text) scale_embedding(context, of_text, text, rows.text, "embedding");
  tape.push([=, of_images = std::move(of_images), of_text = std::move(of_text)](Context& c, BufferId dout) {
    const ImageAndText gradients = apart(c, dout, images);
    of_text.backward(c, gradients.text);
    of_images.backward(c, gradients.images);
    return dout;
  });
  return out;
}

}  // namespace

ParameterSpec token_table(const Context& context, const std::string& tensor) {
  const LocalSizes& n = context.sizes;
  ParameterSpec spec;
  spec.pieces = {{tensor, n.vocab * n.tp, n.hidden, n.vocab * n.tp_rank, 0, n.vocab, n.hidden}};
  if (tensor == "embedding" && context.scenario.model.embeds_at_the_end() && context.scenario.parallelism.pp > 1) {
    spec.kind = ParameterKind::tied;
    spec.norm_share = 1.0 / static_cast<double>(parts_with_token_table(context.scenario).size());
  }
  return spec;
}

EmbeddingParameters declare_embedding(Context& context, ChunkParameters& parameters) {
  const ModelSpec& model = context.scenario.model;
  const LocalSizes& n = context.sizes;
  EmbeddingParameters weights;
  ParameterSpec tokens = token_table(context, "embedding");
  if (context.scenario.parallelism.pp == 1) {
    const auto further = static_cast<int>(model.mtp_depth);
    tokens.uses = 1 + further + (model.tied_embeddings ? 1 + further : 0);  // lookups, and as the weight of the LM head
  }
  weights.tokens = parameters.declare(std::move(tokens));
  if (model.learns_positions()) {
    const std::int64_t rows = model.max_positions / n.tp;
    ParameterSpec positions;
    positions.pieces = {{"positions", model.max_positions, n.hidden, rows * n.tp_rank, 0, rows, n.hidden}};
    weights.positions = parameters.declare(std::move(positions));
  }
  if (model.encoder.enabled()) weights.encoder = declare_encoder(context, parameters);
  return weights;
}

BufferId embed_later_tokens(Context& context, Tape& tape, ParameterId table, std::int32_t ahead) {
  const BufferId ids = input(context, InputShard::Content::tokens, ahead);
  const BufferId x = context.reduce_partial(look_up(context, tape, table, ids, "later tokens"), "later tokens");
  tape.push([](Context& c, BufferId dy) { return c.gather_sequence(dy, "later tokens"); });
  return scale_embedding(context, tape, x, "later tokens");
}

BufferId embedding(Context& context, Tape& tape, const EmbeddingParameters& weights) {
  const BufferId ids = input(context, InputShard::Content::tokens);
  BufferId sum =
      weights.encoder ? images_and_text(context, tape, weights, ids) : look_up(context, tape, weights.tokens, ids, "embedding");
  if (context.scenario.model.learns_positions()) {
    const BufferId places = input(context, InputShard::Content::positions);
    const BufferId added = look_up(context, tape, weights.positions, places, "position embedding");
    const BufferId both = context.activation(context.shape_of(sum));
    context.kernel(OpKind::add, {}, "position embedding", {sum, added}, {both});
    sum = both;
  }
  const BufferId x = context.reduce_partial(sum, "embedding");
  tape.push([](Context& c, BufferId dy) { return c.gather_sequence(dy, "embedding"); });
  const BufferId scaled = weights.encoder ? x : scale_embedding(context, tape, x, "embedding");
  const BufferId y = drop_embedding(context, tape, scaled);
  return context.scenario.model.hyper.enabled() ? begin_streams(context, tape, y) : y;
}

}  // namespace tandem::scenarios
