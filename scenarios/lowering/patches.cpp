#include "scenarios/lowering/patches.h"

#include <algorithm>

#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {
namespace {

const EncoderSpec& encoder_of(const Context& context) { return context.whole_model().encoder; }

/// Of these images' rows, one row for each image.
BufferId by_image(Context& context, BufferId x, std::int64_t rows) {
  const Shape shape = context.shape_of(x);
  return context.builder.view(x, 0, Shape(shape[0] / rows, rows * shape[2]));
}

BufferId multiply_patches(Context& context, Tape& tape, ParameterId weight) {
  const LocalSizes& n = context.sizes;
  const EncoderSpec& encoder = encoder_of(context);
  const BufferId all = patches(context, Shape(encoder.images * encoder.patches, n.batch, encoder.patch_width));
  const BufferId own = n.sequence_parallel ? context.shard_of(all, n.tp_rank) : all;
  tape.push([=](Context& c, BufferId dy) {
    add_weight_gradient(c, weight, own, dy, "patch embedding");
    return no_id;
  });
  return multiply(context, weight, own, "patch embedding");
}

/// Adds elements of the parameter, from `first` on, to each row of `rows`, a view of x.
void add_to_rows(Context& context, Tape& tape, ParameterId parameter, std::int64_t first, BufferId rows, std::string_view name) {
  const std::int64_t width = context.shape_of(rows)[1];
  const BufferId added = context.builder.view(context.parameters().weight(parameter), first, Shape(width, 1));
  context.kernel(OpKind::add_bias, {}, name, {added}, {}, {rows});
  tape.push([=, shape = context.shape_of(rows), name = std::string(name)](Context& c, BufferId dy) {
    const BufferId of_rows = c.builder.view(dy, 0, shape);
    c.weight_gradient(parameter, [=](Context& w, BufferId gradient) {
      w.kernel(OpKind::bias_gradient, {}, name, {of_rows}, {}, {w.builder.view(gradient, first, Shape(width, 1))});
    });
    return dy;
  });
}

BufferId zeros(Context& context, const Shape& shape, std::string_view name) {
  const BufferId made = context.activation(shape);
  context.kernel(OpKind::fill, ScaleAttributes{0.0F}, name, {}, {made});
  return made;
}

BufferId append_class_tokens(Context& context, Tape& tape, ParameterId token, BufferId x) {
  constexpr std::string_view name = "class token";
  const std::int64_t h = context.sizes.hidden;
  const BufferId of_patches = by_image(context, x, encoder_of(context).patches);
  const std::int64_t images = context.shape_of(of_patches)[0];
  const BufferId tokens = zeros(context, Shape(images, h), name);
  const Shape patches_of_images = context.shape_of(of_patches), rows = context.shape_of(x);
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(rows), dtokens = c.activation(Shape(images, h));
    c.kernel(OpKind::split_columns, {}, name, {by_image(c, dy, encoder_of(c).rows())},
             {c.builder.view(dx, 0, patches_of_images), dtokens});
    c.weight_gradient(token, [=](Context& w, BufferId gradient) {
      w.kernel(OpKind::bias_gradient, {}, name, {dtokens}, {}, {w.builder.view(gradient, 0, Shape(h, 1))});
    });
    return dx;
  });
  const BufferId row = context.builder.view(context.parameters().weight(token), 0, Shape(h, 1));
  context.kernel(OpKind::add_bias, {}, name, {row}, {}, {tokens});
  const BufferId all = context.activation(Shape(rows[0] + images, rows[1], h));
  context.kernel(OpKind::join_columns, {}, name, {of_patches, tokens}, {by_image(context, all, encoder_of(context).rows())});
  return all;
}

/// To each of the images on this rank, or to the part of one that is.
void add_positions(Context& context, Tape& tape, ParameterId table, BufferId x) {
  const std::int64_t of_image = encoder_of(context).rows(), here = context.shape_of(x)[0];
  const std::int64_t first = context.sizes.sequence_parallel ? context.sizes.tp_rank * here % of_image : 0;
  add_to_rows(context, tape, table, first * context.sizes.hidden, by_image(context, x, std::min(of_image, here)),
              "patch positions");
}

}  // namespace

PatchParameters declare_patches(Context& context, ChunkParameters& parameters) {
  const EncoderSpec& encoder = encoder_of(context);
  const std::int64_t h = context.sizes.hidden;
  const auto matrix = [&](const std::string& tensor, std::int64_t rows, std::int64_t columns) {
    return parameters.declare(replicated_matrix(context, {{tensor, rows, columns, 0, 0, rows, columns}}));
  };
  PatchParameters weights;
  weights.product = matrix("encoder.patch", h, encoder.patch_width);
  if (encoder.patch_bias) weights.bias = parameters.declare(replicated_bias(context, "encoder.patch.bias", h));
  if (encoder.class_token) weights.class_token = matrix("encoder.class_token", 1, h);
  if (encoder.learned_positions > 0) weights.positions = matrix("encoder.positions", encoder.learned_positions, h);
  if (encoder.first_norm) weights.norm = declare_norm(context, parameters, "encoder.first_norm");
  return weights;
}

BufferId embed_patches(Context& context, Tape& tape, const PatchParameters& weights) {
  BufferId x = multiply_patches(context, tape, weights.product);
  if (weights.bias) add_to_rows(context, tape, *weights.bias, 0, by_image(context, x, 1), "patch embedding");
  if (weights.class_token) x = append_class_tokens(context, tape, *weights.class_token, x);
  if (weights.positions) add_positions(context, tape, *weights.positions, x);
  return weights.norm ? norm(context, tape, *weights.norm, x, "first norm") : x;
}

BufferId without_class_tokens(Context& context, Tape& tape, BufferId x) {
  const EncoderSpec& encoder = encoder_of(context);
  if (!encoder.class_token) return x;
  constexpr std::string_view name = "class token";
  const Shape rows = context.shape_of(x);
  const std::int64_t images = rows[0] / encoder.rows(), h = rows[2], patches_of_image = encoder.patches;
  const BufferId kept = context.activation(Shape(images * patches_of_image, rows[1], h)),
                 left = context.activation(Shape(images, h));
  context.kernel(OpKind::split_columns, {}, name, {by_image(context, x, encoder.rows())},
                 {by_image(context, kept, patches_of_image), left});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(rows);
    c.kernel(OpKind::join_columns, {}, name, {by_image(c, dy, patches_of_image), zeros(c, Shape(images, h), name)},
             {by_image(c, dx, encoder_of(c).rows())});
    return dx;
  });
  return kept;
}

BufferId merge_patches(Context& context, Tape& tape, BufferId x) {
  const std::int64_t merge = encoder_of(context).merge;
  const Shape rows = context.shape_of(x);
  if (!encoder_of(context).pool) {
    tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, rows); });
    return context.builder.view(x, 0, Shape(rows[0] / merge, rows[1], merge * rows[2]));
  }
  const BufferId means = context.activation(Shape(rows[0] / merge, rows[1], rows[2]));
  context.kernel(OpKind::pool_rows, {}, "pool", {x}, {means});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(rows);
    c.kernel(OpKind::pool_rows_backward, {}, "pool", {dy}, {dx});
    return dx;
  });
  return means;
}

}  // namespace tandem::scenarios
