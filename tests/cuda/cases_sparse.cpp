#include <cmath>

#include "runtime/ops/sparse_sizes.h"
#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

double sparse_tolerance(DType type) { return type == DType::f32 ? 2e-5 : type == DType::f16 ? 4e-3 : 3e-2; }

Positions sparse_run(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }

/// What of a sequence a rank has, and how many of the keys a query chooses.
struct SparseCase {
  std::string name;
  Positions queries;
  std::int64_t keys, most, heads, width, value_width;
};

const std::vector<SparseCase>& sparse_shapes() {
  static const std::vector<SparseCase> shapes{{"all", sparse_run(0, 13), 13, 13, 2, 12, 8},
                                              {"few", sparse_run(0, 37), 37, 5, 3, 40, 33},
                                              {"zigzag", {.start = {4, 12}, .length = {4, 4}}, 20, 6, 2, 9, 5}};
  return shapes;
}

std::vector<float> rounded_to(const std::vector<float>& numbers, DType type) {
  std::vector<float> rounded = numbers;
  if (type == DType::f32) return rounded;
  for (float& number : rounded) number = std::round(number * 64) / 64;  // exact in bf16 and fp16
  return rounded;
}

HostTensor host_of(CaseOperand& operand) {
  if (operand.numbers.empty()) operand.numbers.assign(static_cast<std::size_t>(operand.type.shape.elements()), 0.0F);
  return {operand.numbers.data(), operand.type.shape};
}

/// The keys that an indexer of random numbers chooses.
CaseOperand chosen_keys(const SparseCase& shape, std::int64_t batch, SparseAttentionAttributes attributes) {
  constexpr std::int64_t heads = 2, width = 4;
  const std::int64_t s = shape.queries.count();
  CaseOperand q = read(Shape(s, batch, heads, width), DType::f32, 11),
              k = read(Shape(shape.keys, batch, 1, width), DType::f32, 12);
  CaseOperand w = read(Shape(s, batch, heads), DType::f32, 13);
  const Shape chosen(batch, s, shape.most);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(chosen.elements()));
  const std::vector<HostTensor> operands{host_of(q), host_of(k), host_of(w), {numbers.data(), chosen}};
  operation(OpKind::index_select).host(operands, attributes);
  return read_integers(chosen, std::move(numbers));
}

}  // namespace

std::vector<OperationCase> sparse_attention_cases() {
  std::vector<OperationCase> cases;
  constexpr std::int64_t batch = 2;
  for (const SparseCase& shape : sparse_shapes())
    for (const DType type : trained_types)
      for (const bool all_keys : {false, true}) {
        const std::int64_t s = shape.queries.count();
        const SparseAttentionAttributes attributes{.scale = 0.4F,
                                                   .queries = shape.queries,
                                                   .keys = sparse_run(0, static_cast<std::int32_t>(shape.keys)),
                                                   .all_keys = all_keys,
                                                   .coefficient = 0.25F};
        const Shape of_q(s, batch, shape.heads, shape.width), of_k(shape.keys, batch, 1, shape.width),
            of_w(s, batch, shape.heads);
        const Shape of_out(s, batch, shape.heads, shape.value_width), of_lse(batch, shape.heads, s);
        const auto numbers = [&](const Shape& of, unsigned seed) { return rounded_to(random_numbers(of, seed), type); };
        const CaseOperand q = read(of_q, type, numbers(of_q, 1)), k = read(of_k, type, numbers(of_k, 2));
        const CaseOperand w = read(of_w, type, numbers(of_w, 3)), chosen = chosen_keys(shape, batch, attributes);
        const CaseOperand target = read(Shape(batch, s, all_keys ? shape.keys : shape.most), DType::f32,
                                        random_numbers(Shape(batch, s, all_keys ? shape.keys : shape.most), 4));
        const auto add = [&](OpKind kind, std::vector<CaseOperand> operands) {
          cases.push_back({join_name(std::string(operation(kind).name), shape.name, name_of(type), all_keys ? "all" : "chosen"),
                           kind, attributes, std::move(operands), sparse_tolerance(type)});
        };
        CaseOperand positive = target;
        for (float& number : positive.numbers) number = std::abs(number);
        add(OpKind::index_loss_backward, {q, k, w, chosen, positive, write(of_q, type), write(of_k, type), write(of_w, type)});
        add(OpKind::index_target, {q, k, chosen, write(target.type.shape, DType::f32)});
        if (all_keys) continue;
        add(OpKind::index_select, {q, k, w, write(chosen.type.shape, DType::i32)});
        add(OpKind::sparse_attention, {q, k, chosen, write(of_out, type), write(of_lse, DType::f32)});
        CaseOperand out = read(of_out, type, std::vector<float>()), lse = read(of_lse, DType::f32, std::vector<float>());
        CaseOperand of_host_q = q, of_host_k = k, of_host_chosen = chosen;
        const std::vector<HostTensor> operands{host_of(of_host_q),
                                               host_of(of_host_k),
                                               {of_host_chosen.integers.data(), chosen.type.shape},
                                               host_of(out),
                                               host_of(lse)};
        operation(OpKind::sparse_attention).host(operands, attributes);
        add(OpKind::sparse_attention_backward,
            {q, k, chosen, out, lse, read(of_out, type, numbers(of_out, 5)), write(of_q, type), write(of_k, type)});
      }
  return cases;
}

std::vector<OperationCase> head_gemm_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const DType gradient : type == DType::f32 ? std::vector{type} : std::vector{type, DType::f32}) {
      constexpr std::int64_t heads = 3, columns = 16, head_rows = 24, first = 8, rows = 16;
      const Shape narrow(5, 2, heads, rows), wide(5, 2, heads, columns), weight(heads * head_rows, columns);
      const auto add = [&](bool a, bool b, const CaseOperand& first_operand, const CaseOperand& second,
                           const CaseOperand& third) {
        cases.push_back({join_name("head_gemm", name_of(type), name_of(gradient), a ? "t" : "n", b ? "t" : "n"),
                         OpKind::head_gemm,
                         HeadGemmAttributes{.transpose_a = a, .transpose_b = b, .head_rows = head_rows, .first_row = first},
                         {first_operand, second, third},
                         1e-5 + (a ? rounding_before_adding(gradient) : 0)});
      };
      add(true, false, read(narrow, type, 1), read(wide, type, 2), update(weight, gradient, 3));
      if (gradient != type) continue;
      add(false, false, read(narrow, type, 1), read(weight, type, 2), write(wide, type));
      add(false, true, read(wide, type, 1), read(weight, type, 2), write(narrow, type));
    }
  return cases;
}

}  // namespace tandem::studies
