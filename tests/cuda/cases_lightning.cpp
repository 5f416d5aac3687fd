#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

void append_lightning(std::vector<OperationCase>& cases, DType type, const LightningAttributes& n, int positions, int heads) {
  const Shape mixed(positions, 2, 3 * heads * n.head_dim), out(positions, 2, heads * n.head_dim);
  const auto name = join_name(std::string(name_of(type)), positions, heads, n.head_dim, n.chunk);
  cases.push_back(
      {join_name("lightning_attention", name), OpKind::lightning_attention, n, {read(mixed, type, 1), write(out, type)}});
  cases.push_back({join_name("lightning_attention_backward", name),
                   OpKind::lightning_attention_backward,
                   n,
                   {read(mixed, type, 1), read(out, type, 2), write(mixed, type)}});
}

void append_split_norm(std::vector<OperationCase>& cases, DType type, int width, int columns, bool gated) {
  const SplitNormAttributes n{.width = width, .gated = gated};
  const Shape x(5, 2, columns), weight(1, columns), sums(5, 2);
  std::vector<float> squares = random_numbers(sums, 1);
  for (float& value : squares) value = (2 + value) * static_cast<float>(width);
  const auto name = join_name(std::string(name_of(type)), width, columns, gated ? "gated" : "plain");
  std::vector<CaseOperand> reads{read(x, type, 2), read(sums, DType::f32, squares), read(weight, type, 3)};
  if (gated) reads.push_back(read(x, type, 4));
  const auto with = [&](std::vector<CaseOperand> others) {
    others.insert(others.begin(), reads.begin(), reads.end());
    return others;
  };
  if (gated)
    cases.push_back({join_name("split_norm_squares", name),
                     OpKind::split_norm_squares,
                     std::monostate{},
                     {read(x, type, 2), write(sums, DType::f32)}});
  cases.push_back({join_name("split_norm", name), OpKind::split_norm, n, with({write(x, type)})});
  cases.push_back({join_name("split_norm_products", name), OpKind::split_norm_products, n,
                   with({read(x, type, 5), write(sums, DType::f32)})});
  std::vector<CaseOperand> gradients{read(x, type, 5), read(sums, DType::f32, 6), write(x, type)};
  if (gated) gradients.push_back(write(x, type));
  gradients.push_back(update(weight, DType::f32, 7));
  cases.push_back({join_name("split_norm_backward", name), OpKind::split_norm_backward, n, with(gradients)});
}

}  // namespace

std::vector<OperationCase> lightning_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    append_lightning(cases, type, {.head_dim = 8, .chunk = 4, .heads = 6, .first_head = 2, .decay = 0.75F}, 11, 4);
    append_lightning(cases, type, {.head_dim = 5, .chunk = 16, .heads = 3, .first_head = 0, .decay = 1e-5F}, 7, 3);
    append_lightning(cases, type, {.head_dim = 12, .chunk = 1, .heads = 2, .first_head = 1, .decay = 1.0F}, 3, 1);
    for (const bool gated : {true, false}) {
      append_split_norm(cases, type, 33, 33, gated);
      append_split_norm(cases, type, 600, 300, gated);
      append_split_norm(cases, type, 64, 64, gated);
      append_split_norm(cases, type, 2048, 1024, gated);
      append_split_norm(cases, type, 4112, 4112, gated);
    }
  }
  return cases;
}

}  // namespace tandem::studies
