#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// Two runs of positions, as under zigzag context parallelism; the second where fp32 angles would be wrong by a thousandth.
constexpr Positions late{.start = {3, 100000}, .length = {2, 3}};

void append_heads(std::vector<OperationCase>& cases, DType type, int head_dim, bool rotate) {
  constexpr int heads = 4, kv_heads = 2;
  const SplitHeadsAttributes attributes{.heads = heads, .kv_heads = kv_heads, .rotate = rotate, .positions = late};
  const Shape q(5, 2, heads, head_dim), k(5, 2, kv_heads, head_dim);
  const Shape qkv(5, 2, (heads + 2 * kv_heads) * head_dim), flat_q(5, 2, heads * head_dim), kv(5, 2, 2 * kv_heads * head_dim);
  const auto name = join_name(std::string(name_of(type)), head_dim, rotate ? "turned" : "copied");
  cases.push_back({join_name("split_heads", name),
                   OpKind::split_heads,
                   attributes,
                   {read(qkv, type, 1), write(q, type), write(k, type), write(k, type)}});
  cases.push_back({join_name("split_heads_of_two", name),
                   OpKind::split_heads,
                   attributes,
                   {read(flat_q, type, 1), read(kv, type, 2), write(q, type), write(k, type), write(k, type)}});
  cases.push_back({join_name("split_heads_backward", name),
                   OpKind::split_heads_backward,
                   attributes,
                   {read(q, type, 1), read(k, type, 2), read(k, type, 3), write(qkv, type)}});
  cases.push_back({join_name("split_heads_backward_of_two", name),
                   OpKind::split_heads_backward,
                   attributes,
                   {read(q, type, 1), read(k, type, 2), read(k, type, 3), write(flat_q, type), write(kv, type)}});
}

void append_rotations(std::vector<OperationCase>& cases, DType type, int head_dim, int rotated) {
  const SplitHeadsAttributes attributes{.heads = 4, .kv_heads = 2, .positions = late, .rotated = rotated};
  const Shape q(5, 2, 4, head_dim), k(5, 2, 2, head_dim);
  const auto name = join_name(std::string(name_of(type)), head_dim, rotated);
  for (const OpKind op : {OpKind::rotary, OpKind::rotary_backward})
    cases.push_back({join_name(std::string(operation(op).name), name), op, attributes, {update(q, type, 1), update(k, type, 2)}});
  cases.push_back({join_name("split_heads_in_part", name),
                   OpKind::split_heads,
                   attributes,
                   {read(Shape(5, 2, 8 * head_dim), type, 1), write(q, type), write(k, type), write(k, type)}});
}

void append_latent_heads(std::vector<OperationCase>& cases, DType type, int nope, int rope, int value) {
  constexpr int heads = 3;
  const MlaHeadsAttributes attributes{.rope_dim = rope, .positions = late};
  const Shape q(5, 2, heads, nope + rope), v(5, 2, heads, value), flat_q(5, 2, heads * (nope + rope));
  const Shape shared(5, 2, rope), keys_values(5, 2, heads * (nope + value));
  const auto name = join_name(std::string(name_of(type)), nope, rope, value);
  cases.push_back({join_name("mla_queries", name), OpKind::mla_queries, attributes, {read(flat_q, type, 1), write(q, type)}});
  cases.push_back({join_name("mla_queries_backward", name),
                   OpKind::mla_queries_backward,
                   attributes,
                   {read(q, type, 1), write(flat_q, type)}});
  cases.push_back({join_name("mla_keys_values", name),
                   OpKind::mla_keys_values,
                   attributes,
                   {read(keys_values, type, 1), read(shared, type, 2), write(q, type), write(v, type)}});
  cases.push_back({join_name("mla_keys_values_backward", name),
                   OpKind::mla_keys_values_backward,
                   attributes,
                   {read(q, type, 1), read(v, type, 2), write(keys_values, type), write(shared, type)}});
}

/// Of rows that stand for several positions each, with stretched angles.
void append_stretched(std::vector<OperationCase>& cases, DType type) {
  const MlaHeadsAttributes attributes{.rope_dim = 12,
                                      .positions = {.start = {0, 0}, .length = {5, 0}},
                                      .stride = 4,
                                      .yarn = {.factor = 16, .original = 32, .beta_fast = 4, .beta_slow = 1}};
  const Shape heads(5, 2, 1, 20), rows(5, 2, 20);
  const auto name = join_name(std::string(name_of(type)), "stretched");
  cases.push_back({join_name("mla_queries", name), OpKind::mla_queries, attributes, {read(rows, type, 1), write(heads, type)}});
  cases.push_back({join_name("mla_queries_backward", name),
                   OpKind::mla_queries_backward,
                   attributes,
                   {read(heads, type, 1), write(rows, type)}});
}

/// Rotations that count from the start of each document, of two sequences in four parts.
void append_documents(std::vector<OperationCase>& cases, DType type) {
  const Positions runs{.start = {2, 9}, .length = {2, 3}};
  const Documents documents{.sequence = 16, .parts = 4, .starts = {0, 4, 16, 24, 28}};
  const Shape q(5, 2, 4, 16), k(5, 2, 2, 16), qkv(5, 2, 8 * 16);
  const SplitHeadsAttributes split{.heads = 4, .kv_heads = 2, .positions = runs, .documents = documents};
  const auto name = join_name(std::string(name_of(type)), "documents");
  cases.push_back({join_name("split_heads", name),
                   OpKind::split_heads,
                   split,
                   {read(qkv, type, 1), write(q, type), write(k, type), write(k, type)}});
  cases.push_back({join_name("split_heads_backward", name),
                   OpKind::split_heads_backward,
                   split,
                   {read(q, type, 1), read(k, type, 2), read(k, type, 3), write(qkv, type)}});
  cases.push_back({join_name("rotary", name), OpKind::rotary, split, {update(q, type, 1), update(k, type, 2)}});
  const MlaHeadsAttributes latent{.rope_dim = 6, .positions = runs, .documents = documents};
  const Shape heads(5, 2, 3, 11), v(5, 2, 3, 4), shared(5, 2, 6), keys_values(5, 2, 3 * 9);
  cases.push_back(
      {join_name("mla_queries", name), OpKind::mla_queries, latent, {read(Shape(5, 2, 33), type, 1), write(heads, type)}});
  cases.push_back({join_name("mla_keys_values", name),
                   OpKind::mla_keys_values,
                   latent,
                   {read(keys_values, type, 1), read(shared, type, 2), write(heads, type), write(v, type)}});
  cases.push_back({join_name("mla_keys_values_backward", name),
                   OpKind::mla_keys_values_backward,
                   latent,
                   {read(heads, type, 1), read(v, type, 2), write(keys_values, type), write(shared, type)}});
}

}  // namespace

std::vector<OperationCase> heads_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    for (const int head_dim : {2, 6, 16, 64, 320}) append_heads(cases, type, head_dim, true);
    for (const int head_dim : {3, 64}) append_heads(cases, type, head_dim, false);
    for (const auto& [head_dim, rotated] : {std::pair(64, 0), std::pair(64, 32), std::pair(10, 6), std::pair(48, 16)})
      append_rotations(cases, type, head_dim, rotated);
    append_documents(cases, type);
    append_stretched(cases, type);
    append_latent_heads(cases, type, 32, 16, 24);
    append_latent_heads(cases, type, 5, 6, 3);
    append_latent_heads(cases, type, 0, 64, 128);
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

}  // namespace tandem::studies
