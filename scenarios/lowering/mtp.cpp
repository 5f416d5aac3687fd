#include "scenarios/lowering/mtp.h"

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {
namespace {

/// Of the further tokens' loss; what DeepSeek-V3 trains with for its first 10T tokens (arXiv 2412.19437, section 4.2).
constexpr double further_weight = 0.3;

struct Prediction {
  Tape module, loss;
};

BufferId add(Context& context, BufferId a, BufferId b) {
  const BufferId sum = context.activation(context.shape_of(a));
  context.kernel(OpKind::add, {}, "mtp gradient", {a, b}, {sum});
  return sum;
}

/// norm(embedding of the token `ahead` positions later)
BufferId embed_normed(Context& context, Tape& tape, const MtpDepth& weights, ParameterId table, std::int32_t ahead) {
  return norm(context, tape, weights.token_norm, embed_later_tokens(context, tape, table, ahead), "mtp token norm");
}

/// projection [norm(h); token]
BufferId project_joined(Context& context, Tape& tape, const MtpDepth& weights, ParameterId table, std::int32_t ahead,
                        BufferId h) {
  Tape hidden, token;
  const BufferId a = norm(context, hidden, weights.hidden_norm, h, "mtp hidden norm");
  const BufferId b = embed_normed(context, token, weights, table, ahead);
  const Shape rows = context.shape_of(h);
  const BufferId joined = context.activation(Shape(rows[0], rows[1], 2 * rows[2]));
  context.kernel(OpKind::join_columns, {}, "mtp join", {a, b}, {joined});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId da = c.activation(rows), db = c.activation(rows);
    c.kernel(OpKind::split_columns, {}, "mtp join", {dy}, {da, db});
    token.backward(c, db);
    return hidden.backward(c, da);
  });
  return replicated_linear(context, tape, weights.projection, joined, "mtp projection");
}

/// projection norm(stream) + token_projection token, of every stream of h.
BufferId project_streams(Context& context, Tape& tape, const MtpDepth& weights, ParameterId table, std::int32_t ahead,
                         BufferId h) {
  const Shape streams = context.shape_of(h);
  const std::int64_t width = context.sizes.hidden;
  const Shape by_stream(streams[0], streams[1] * streams[2] / width, width);
  Tape hidden, token;
  const BufferId normed = norm(context, hidden, weights.hidden_norm, context.builder.view(h, 0, by_stream), "mtp hidden norm");
  const BufferId of_streams = replicated_linear(context, hidden, weights.projection, normed, "mtp projection");
  const BufferId embedded = embed_normed(context, token, weights, table, ahead);
  const BufferId of_token = begin_streams(
      context, token, replicated_linear(context, token, weights.token_projection, embedded, "mtp token projection"));
  const BufferId sum = context.activation(streams);
  context.kernel(OpKind::add, {}, "mtp streams", {context.builder.view(of_streams, 0, streams), of_token}, {sum});
  tape.push([=](Context& c, BufferId dy) {
    token.backward(c, dy);
    return c.builder.view(hidden.backward(c, c.builder.view(dy, 0, by_stream)), 0, streams);
  });
  return sum;
}

/// Labels what the tape does from here on backwards as belonging to `layer`.
void enter_backwards(Tape& tape, std::int16_t layer) {
  tape.push([=](Context& c, BufferId dy) {
    c.layer = layer;
    return dy;
  });
}

BufferId predict_further(Context& context, Tape& tape, const MtpDepth& weights, ParameterId table, std::int32_t ahead,
                         BufferId h) {
  const auto number = static_cast<std::int16_t>(context.scenario.model.layers + ahead - 1);
  enter_backwards(tape, -1);
  context.layer = number;
  const BufferId x = weights.end.streams ? project_streams(context, tape, weights, table, ahead, h)
                                         : project_joined(context, tape, weights, table, ahead, h);
  const BufferId y = layer(context, tape, weights.layer, x);
  context.layer = -1;
  enter_backwards(tape, number);
  return y;
}

ParameterId declare_token_table(const Context& context, ChunkParameters& parameters) {
  ParameterSpec table = token_table(context, "embedding");
  table.uses = static_cast<int>(context.scenario.model.mtp_depth);
  return parameters.declare(std::move(table));
}

/// The k-th of states that lie one after the other along the sequence.
BufferId state_of(Context& context, BufferId states, std::size_t k) {
  const LocalSizes& n = context.sizes;
  const Shape shape(n.sequence_shard, n.batch, n.hidden);
  return context.builder.view(states, static_cast<std::int64_t>(k) * shape.elements(), shape);
}

BufferId join_states(Context& context, const std::vector<BufferId>& states) {
  const LocalSizes& n = context.sizes;
  const BufferId all = context.activation(Shape(static_cast<std::int64_t>(states.size()) * n.sequence_shard, n.batch, n.hidden));
  for (std::size_t k = 0; k < states.size(); ++k)
    context.kernel(OpKind::scale, ScaleAttributes{1.0F}, "mtp states", {states[k]}, {state_of(context, all, k)});
  return all;
}

LossTerm further_term(const Context& context, std::size_t depth) {
  return {static_cast<std::int32_t>(depth + 1), further_weight / static_cast<double>(context.scenario.model.mtp_depth)};
}

}  // namespace

MtpParameters declare_mtp(const Context& context, ChunkParameters& parameters, const ParameterId* table, bool ends_streams) {
  const ModelSpec& model = context.scenario.model;
  MtpParameters weights;
  if (model.mtp_depth == 0) return weights;
  if (ends_streams && model.hyper.enabled())
    weights.streams = declare_hyper_connection(context, parameters, "final_streams", false);
  weights.tokens = table != nullptr ? *table : declare_token_table(context, parameters);
  for (std::int64_t k = 0; k < model.mtp_depth; ++k) {
    const std::string name = "mtp" + std::to_string(k + 1);
    const std::int64_t h = model.hidden;
    MtpDepth depth;
    depth.hidden_norm = declare_norm(context, parameters, name + ".hidden_norm");
    depth.token_norm = declare_norm(context, parameters, name + ".token_norm");
    const std::int64_t columns = model.hyper.enabled() ? h : 2 * h;
    const auto matrix = [&](const char* tensor, std::int64_t width) {
      return parameters.declare(replicated_matrix(context, {{name + tensor, h, width, 0, 0, h, width}}));
    };
    depth.projection = matrix(".projection", columns);
    if (model.hyper.enabled()) depth.token_projection = matrix(".token_projection", h);
    depth.layer = declare_layer(context, parameters, model.layers + k);
    depth.end = declare_end(context, parameters, name + ".", true);
    weights.depths.push_back(depth);
  }
  return weights;
}

void losses(Context& context, Tape& tape, const LossParameters& next, const MtpParameters& further, BufferId x) {
  Tape of_next;
  loss(context, of_next, next, x);
  std::vector<Prediction> predictions;
  for (BufferId h = x; const MtpDepth& depth : further.depths) {
    const LossTerm term = further_term(context, predictions.size());
    Prediction& prediction = predictions.emplace_back();
    h = predict_further(context, prediction.module, depth, further.tokens, term.ahead, h);
    loss(context, prediction.loss, {depth.end, next.head}, h, term);
  }
  tape.push([of_next = std::move(of_next), predictions = std::move(predictions)](Context& c, BufferId) {
    BufferId dh = no_id;
    for (auto prediction = predictions.rbegin(); prediction != predictions.rend(); ++prediction) {
      const BufferId from_loss = prediction->loss.backward(c, no_id);
      dh = prediction->module.backward(c, dh == no_id ? from_loss : add(c, from_loss, dh));
    }
    const BufferId from_next = of_next.backward(c, no_id);
    return dh == no_id ? from_next : add(c, from_next, dh);
  });
}

BufferId predict_for_another(Context& context, Tape& tape, const MtpParameters& further, BufferId x) {
  Tape end;
  std::vector<BufferId> states{further.streams ? end_streams(context, end, *further.streams, x) : x};
  std::vector<Prediction> predictions;  // whose loss is the norm's part of it
  for (BufferId h = x; const MtpDepth& depth : further.depths) {
    Prediction& prediction = predictions.emplace_back();
    h = predict_further(context, prediction.module, depth, further.tokens, static_cast<std::int32_t>(predictions.size()), h);
    states.push_back(end_of_layers(context, prediction.loss, depth.end, h));
  }
  tape.push([end = std::move(end), predictions = std::move(predictions)](Context& c, BufferId gradients) {
    BufferId dh = no_id;
    for (std::size_t k = predictions.size(); k-- > 0;) {
      const BufferId from_loss = predictions[k].loss.backward(c, state_of(c, gradients, k + 1));
      dh = predictions[k].module.backward(c, dh == no_id ? from_loss : add(c, from_loss, dh));
    }
    return add(c, end.backward(c, state_of(c, gradients, 0)), dh);
  });
  return join_states(context, states);
}

void losses_of_predicted(Context& context, Tape& tape, const LossParameters& next, BufferId states) {
  std::vector<Tape> terms(static_cast<std::size_t>(1 + context.scenario.model.mtp_depth));
  loss(context, terms.front(), next, state_of(context, states, 0));
  for (std::size_t k = 1; k < terms.size(); ++k)
    loss_of_normed(context, terms[k], next.head, state_of(context, states, k), further_term(context, k - 1));
  tape.push([terms = std::move(terms)](Context& c, BufferId) {
    std::vector<BufferId> gradients(terms.size());
    for (std::size_t k = terms.size(); k-- > 0;) gradients[k] = terms[k].backward(c, no_id);
    return join_states(c, gradients);
  });
}

}  // namespace tandem::scenarios
