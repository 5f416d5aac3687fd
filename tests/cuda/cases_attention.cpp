#include <cmath>
#include <tuple>

#include "tests/cuda/cases.h"

// The tensor cores' kernels take blocks of 32, 64 and 128 queries and keys, so that lengths above have whole blocks and rests; of
// those before they see, hide and skip all. They round the probabilities and the scores' gradients to the operands' type, once
// before each product: an error of 2^-8 of each term in bf16.

namespace tandem::studies {
namespace {

struct Mask {
  std::string name;
  bool causal;
  Positions queries, keys;
  std::int32_t window = 0, chunk = 0;
  float softcap = 0;
  Documents documents = {};  ///< of each sequence
};

constexpr Positions run_of(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }

/// Small ones for all types and widths; long ones, of several blocks, for some.
const std::vector<Mask> small_masks{
    {"full", false, run_of(0, 19), run_of(0, 37)},
    {"causal", true, run_of(0, 33), run_of(0, 33)},
    {"later_queries", true, run_of(30, 17), run_of(0, 47)},
    {"queries_before_keys", true, run_of(2, 20), run_of(12, 15)},
    {"two_runs", true, {.start = {8, 40}, .length = {9, 8}}, {.start = {0, 44}, .length = {12, 11}}},
    {"runs_in_disorder", true, {.start = {30, 3}, .length = {7, 9}}, {.start = {20, 1}, .length = {9, 12}}},
    {"one_query", true, run_of(5, 1), run_of(4, 2)},
    {"sliding", true, run_of(0, 33), run_of(0, 33), 10},
    {"chunked_runs", true, {.start = {8, 40}, .length = {9, 8}}, {.start = {0, 44}, .length = {12, 11}}, 0, 11},
    {"capped", true, run_of(0, 33), run_of(0, 33), 0, 0, 1.5F},
    {"documents", true, run_of(0, 33), run_of(0, 33), 0, 0, 0, {.sequence = 33, .starts = {0, 1, 9, 20}}},
    {"document_chunks",
     true,
     {.start = {6, 42}, .length = {6, 6}},
     {.start = {0, 30}, .length = {12, 12}},
     0,
     0,
     0,
     {.sequence = 48, .parts = 8, .starts = {0, 16, 24}}},
};
const std::vector<Mask> long_masks{
    {"long_full", false, run_of(0, 70), run_of(0, 150)},
    {"long_causal", true, run_of(0, 150), run_of(0, 150)},
    {"long_zigzag", true, {.start = {64, 320}, .length = {64, 70}}, {.start = {0, 384}, .length = {130, 64}}},
    {"long_all_hidden", true, run_of(0, 70), run_of(100, 70)},
    {"long_sliding", true, run_of(0, 300), run_of(0, 300), 50},
    {"long_chunked", true, run_of(0, 300), run_of(0, 300), 0, 90},
    {"long_capped", true, run_of(0, 150), run_of(0, 150), 0, 0, 3.0F},
    {"long_documents", true, run_of(0, 300), run_of(0, 300), 0, 0, 0, {.sequence = 300, .starts = {0, 7, 130, 131, 290}}},
    {"long_full_documents", false, run_of(0, 300), run_of(0, 300), 0, 0, 0, {.sequence = 300, .starts = {0, 96, 130}}},
    {"long_sliding_documents", true, run_of(0, 300), run_of(0, 300), 50, 0, 0, {.sequence = 300, .starts = {0, 160}}},
    {"long_document_chunks",
     true,
     {.start = {64, 256}, .length = {64, 64}},
     {.start = {0, 384}, .length = {128, 64}},
     0,
     0,
     0,
     {.sequence = 512, .parts = 8, .starts = {0, 64, 80, 360}}},
};

struct Heads {
  std::int64_t micro_batch, heads, kv_heads, head_dim, value_dim;
};

/// The same documents in each sequence.
Documents repeated(Documents documents, std::int64_t sequences) {
  const std::vector<std::int64_t> of_first = documents.starts;
  for (std::int64_t b = 1; b < sequences; ++b)
    for (const std::int64_t start : of_first) documents.starts.push_back(b * documents.sequence + start);
  return documents;
}

/// What the host kernel leaves of a forward pass, for the backward's operands.
struct Forward {
  std::vector<float> out, lse;
};

Forward forward(const AttentionAttributes& attributes, const Shape& q, const Shape& k, const Shape& v, const Shape& out,
                const Shape& lse, std::vector<float> q_numbers, std::vector<float> k_numbers, std::vector<float> v_numbers) {
  Forward result{std::vector<float>(static_cast<std::size_t>(out.elements())),
                 std::vector<float>(static_cast<std::size_t>(lse.elements()))};
  const std::vector<HostTensor> operands{
      {q_numbers.data(), q}, {k_numbers.data(), k}, {v_numbers.data(), v}, {result.out.data(), out}, {result.lse.data(), lse}};
  operation(OpKind::attention).host(operands, attributes);
  return result;
}

double tolerance_of(DType type) { return type == DType::f32 ? 1e-5 : type == DType::f16 ? 2e-3 : 2e-2; }

std::string name_of_case(const std::string& name, const Mask& mask, const Heads& h, DType type) {
  return join_name(name, mask.name, name_of(type), "b", h.micro_batch, "heads", h.heads, h.kv_heads, "wide", h.head_dim,
                   h.value_dim);
}

OperationCase forward_case(const Mask& mask, const Heads& h, DType type) {
  const std::int64_t s = mask.queries.count(), t = mask.keys.count();
  const Shape q(s, h.micro_batch, h.heads, h.head_dim), k(t, h.micro_batch, h.kv_heads, h.head_dim);
  const Shape v(t, h.micro_batch, h.kv_heads, h.value_dim), out(s, h.micro_batch, h.heads, h.value_dim);
  const AttentionAttributes attributes{
      mask.causal,  static_cast<float>(1 / std::sqrt(h.head_dim)), mask.queries, mask.keys, mask.window, mask.chunk,
      mask.softcap, repeated(mask.documents, h.micro_batch)};
  return {name_of_case("attention", mask, h, type),
          OpKind::attention,
          attributes,
          {read(q, type, random_numbers(q, 1, 3)), read(k, type, random_numbers(k, 2, 3)), read(v, type, 3), write(out, type),
           write(Shape(h.micro_batch, h.heads, s, 1), DType::f32)},
          tolerance_of(type)};
}

OperationCase backward_case(const Mask& mask, const Heads& h, DType type) {
  OperationCase result = forward_case(mask, h, type);
  const auto& attributes = std::get<AttentionAttributes>(result.attributes);
  const std::vector<CaseOperand> of_forward = result.operands;
  const auto& [q, k, v, out, lse] = std::tie(of_forward[0], of_forward[1], of_forward[2], of_forward[3], of_forward[4]);
  Forward values = forward(attributes, q.type.shape, k.type.shape, v.type.shape, out.type.shape, lse.type.shape, q.numbers,
                           k.numbers, v.numbers);
  result.name = name_of_case("attention_backward", mask, h, type);
  result.kind = OpKind::attention_backward;
  result.operands = {q,
                     k,
                     v,
                     read(out.type.shape, type, std::move(values.out)),
                     read(lse.type.shape, DType::f32, std::move(values.lse)),
                     read(out.type.shape, type, 4),
                     write(q.type.shape, type),
                     write(k.type.shape, type),
                     write(v.type.shape, type)};
  return result;
}

template <typename MakeCase>
std::vector<OperationCase> cases_of(MakeCase make_case) {
  std::vector<OperationCase> cases;
  for (const Mask& mask : small_masks)
    for (const DType type : trained_types) {
      cases.push_back(make_case(mask, Heads{2, 2, 1, 64, 64}, type));
      cases.push_back(make_case(mask, Heads{1, 3, 1, 8, 16}, type));  // filled up with zeros
      cases.push_back(make_case(mask, Heads{1, 2, 2, 5, 3}, type));   // too odd for the tensor cores
    }
  const std::vector<Heads> wide{{1, 1, 1, 128, 128}, {1, 1, 1, 192, 128}, {1, 1, 1, 256, 248}};
  for (const Heads& heads : wide) {
    for (const DType type : {DType::bf16, DType::f16}) cases.push_back(make_case(small_masks[4], heads, type));
    cases.push_back(make_case(long_masks[2], heads, DType::bf16));
  }
  for (const Mask& mask : long_masks) cases.push_back(make_case(mask, Heads{1, 2, 1, 64, 64}, DType::bf16));
  cases.push_back(skewed(make_case(small_masks[1], Heads{1, 2, 1, 64, 64}, DType::bf16)));
  return cases;
}

}  // namespace

std::vector<OperationCase> attention_cases() { return cases_of(forward_case); }
std::vector<OperationCase> attention_backward_cases() { return cases_of(backward_case); }

std::vector<OperationCase> attention_sink_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const std::int64_t width : {3, 64, 136}) {
      const Shape sink(3, 1), out(37, 2, 3, width), lse(2, 3, 37);
      cases.push_back({join_name("attention_sink", name_of(type), width),
                       OpKind::attention_sink,
                       FusedAttributes{},
                       {read(sink, type, 1), update(out, type, 2), update(lse, DType::f32, 3)}});
      cases.push_back(
          {join_name("attention_sink_backward", name_of(type), width),
           OpKind::attention_sink_backward,
           FusedAttributes{},
           {read(sink, type, 1), read(out, type, 2), read(lse, DType::f32, 3), read(out, type, 4), update(sink, DType::f32, 5)}});
    }
  return cases;
}

}  // namespace tandem::studies
