#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

struct HeadSizes {
  std::int64_t queries, keys, batch, heads, kv_heads, dim;
};

/// The whole of one, grouped queries, widths that no vector fits.
const std::vector<HeadSizes> all_heads{{16, 16, 2, 2, 2, 8}, {9, 13, 3, 6, 2, 5}, {33, 40, 1, 4, 1, 16}};

Positions run_from(std::int32_t start, std::int64_t length) {
  return {.start = {start, 0}, .length = {static_cast<std::int32_t>(length), 0}};
}

/// Sums over the query heads of a group are rounded in between.
double tolerance_of_product(DType type, const BatchedGemmAttributes& attributes, const HeadSizes& h) {
  if (!attributes.transpose_a || h.heads == h.kv_heads || type == DType::f32) return 1e-5;
  return type == DType::f16 ? 0x1p-9 : 0x1p-6;
}

OperationCase product(const std::string& name, const BatchedGemmAttributes& attributes, DType type, const HeadSizes& h, Shape a,
                      Shape b, Shape c) {
  return {.name = join_name("batched_gemm", name, name_of(type), h.queries, h.keys, h.heads, h.kv_heads),
          .kind = OpKind::batched_gemm,
          .attributes = attributes,
          .operands = {read(a, type, 1), read(b, type, 2), write(c, type)},
          .tolerance = tolerance_of_product(type, attributes, h)};
}

struct Place {
  std::string name;
  Shape shape;
  DropoutAttributes attributes;
};

const std::vector<Place> places{
    {"hidden", Shape(12, 3, 40), {.probability = 0.3F, .stream = 5, .rows = {.start = {4, 36}, .length = {4, 8}}}},
    {"one", Shape(1, 1, 1), {.probability = 0.5F, .stream = 1, .rows = run_from(3, 1)}},
    {"heads", Shape(2, 3, 7, 9), {.probability = 0.1F, .stream = 9, .first_head = 6, .rows = run_from(0, 7)}},
    {"wide_heads", Shape(1, 2, 16, 64), {.probability = 0.9F, .stream = 2, .rows = run_from(16, 16)}},
};

}  // namespace

std::vector<OperationCase> unfused_attention_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const HeadSizes& h : all_heads) {
      const Shape q(h.queries, h.batch, h.heads, h.dim), k(h.keys, h.batch, h.kv_heads, h.dim);
      const Shape scores(h.batch, h.heads, h.queries, h.keys);
      cases.push_back(product("scores", {.transpose_b = true, .factor = 0.25F}, type, h, q, k, scores));
      cases.push_back(product("weighted", {}, type, h, scores, k, q));
      cases.push_back(product("gathered", {.transpose_a = true, .factor = 2}, type, h, scores, q, k));
      for (const bool causal : {false, true}) {
        const auto later = static_cast<std::int32_t>(h.keys - h.queries);
        const AttentionAttributes mask{.causal = causal, .queries = run_from(later, h.queries), .keys = run_from(0, h.keys)};
        const std::string name = join_name(causal ? "causal" : "full", name_of(type), h.queries, h.keys);
        cases.push_back({join_name("softmax", name),
                         OpKind::softmax,
                         mask,
                         {read(scores, type, random_numbers(scores, 3, 9)), write(scores, type)}});
        cases.push_back({join_name("softmax_backward", name),
                         OpKind::softmax_backward,
                         mask,
                         {read(scores, type, 4), read(scores, type, 5), write(scores, type)}});
      }
    }
  const Shape packed(3, 2, 9, 21);
  const AttentionAttributes documents{
      .queries = run_from(12, 9), .keys = run_from(0, 21), .documents = {.sequence = 21, .starts = {0, 14, 15, 21, 42, 60}}};
  for (const DType type : trained_types)
    cases.push_back({join_name("softmax_documents", name_of(type)),
                     OpKind::softmax,
                     documents,
                     {read(packed, type, random_numbers(packed, 3, 9)), write(packed, type)}});
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

std::vector<OperationCase> dropout_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const Place& place : places) {
      const Shape& x = place.shape;
      const std::int64_t batch = x.rank == 4 ? x[0] : x[1];
      const CaseOperand numbers = read_integers(Shape(1, batch), random_integers(Shape(1, batch), 1'000'000, 6));
      std::vector<float> kept = random_numbers(x, 7);
      for (float& number : kept) number = number > 0 ? 1.0F : 0.0F;
      const auto name = [&](const char* operation) { return join_name(operation, place.name, name_of(type)); };
      cases.push_back(
          {name("dropout"), OpKind::dropout, place.attributes, {read(x, type, 1), numbers, write(x, type), write(x, DType::u8)}});
      cases.push_back({name("dropout_add"),
                       OpKind::dropout_add,
                       place.attributes,
                       {read(x, type, 1), read(x, type, 2), numbers, write(x, type), write(x, DType::u8)}});
      for (const OpKind kind : {OpKind::dropout_backward, OpKind::dropout_add_backward})
        cases.push_back({name(operation(kind).name.data()),
                         kind,
                         place.attributes,
                         {read(x, type, 3), read(x, DType::u8, kept), write(x, type)}});
    }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

}  // namespace tandem::studies
