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

/// [norm(h); norm(embedding of the token `ahead` positions later)]
BufferId join_with_token(Context& context, Tape& tape, const MtpDepth& weights, ParameterId table, std::int32_t ahead,
                         BufferId h) {
  Tape hidden, token;
  const BufferId a = norm(context, hidden, weights.hidden_norm, h, "mtp hidden norm");
  const BufferId embedded = embed_later_tokens(context, token, table, ahead);
  const BufferId b = norm(context, token, weights.token_norm, embedded, "mtp token norm");
  const Shape rows = context.shape_of(h);
  const BufferId joined = context.activation(Shape(rows[0], rows[1], 2 * rows[2]));
  context.kernel(OpKind::join_columns, {}, "mtp join", {a, b}, {joined});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId da = c.activation(rows), db = c.activation(rows);
    c.kernel(OpKind::split_columns, {}, "mtp join", {dy}, {da, db});
    token.backward(c, db);
    return hidden.backward(c, da);
  });
  return joined;
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
  const BufferId joined = join_with_token(context, tape, weights, table, ahead, h);
  const BufferId x = replicated_linear(context, tape, weights.projection, joined, "mtp projection");
  const BufferId y = layer(context, tape, weights.layer, x);
  context.layer = -1;
  enter_backwards(tape, number);
  return y;
}

ParameterId token_table_for(const Context& context, ChunkParameters& parameters, const ParameterId* embedding, ParameterId head) {
  if (embedding != nullptr) return *embedding;
  if (context.scenario.model.tied_embeddings) return head;
  ParameterSpec table = token_table(context, "embedding");
  table.uses = static_cast<int>(context.scenario.model.mtp_depth);
  return parameters.declare(std::move(table));
}

}  // namespace

MtpParameters declare_mtp(const Context& context, ChunkParameters& parameters, const ParameterId* embedding, ParameterId head) {
  const ModelSpec& model = context.scenario.model;
  MtpParameters weights;
  if (model.mtp_depth == 0) return weights;
  weights.tokens = token_table_for(context, parameters, embedding, head);
  for (std::int64_t k = 0; k < model.mtp_depth; ++k) {
    const std::string name = "mtp" + std::to_string(k + 1);
    const std::int64_t h = model.hidden;
    MtpDepth depth;
    depth.hidden_norm = declare_norm(context, parameters, name + ".hidden_norm");
    depth.token_norm = declare_norm(context, parameters, name + ".token_norm");
    depth.projection = parameters.declare(replicated_matrix(context, {{name + ".projection", h, 2 * h, 0, 0, h, 2 * h}}));
    depth.layer = declare_layer(context, parameters, model.layers + k);
    depth.loss = {declare_norm(context, parameters, name + ".final_norm"), head};
    weights.depths.push_back(depth);
  }
  return weights;
}

void losses(Context& context, Tape& tape, const LossParameters& next, const MtpParameters& further, BufferId x) {
  Tape of_next;
  loss(context, of_next, next, x);
  std::vector<Prediction> predictions;
  for (BufferId h = x; const MtpDepth& depth : further.depths) {
    Prediction& prediction = predictions.emplace_back();
    const auto ahead = static_cast<std::int32_t>(predictions.size());
    h = predict_further(context, prediction.module, depth, further.tokens, ahead, h);
    loss(context, prediction.loss, depth.loss, h, {ahead, further_weight / static_cast<double>(further.depths.size())});
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

}  // namespace tandem::scenarios
