#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// The scale is that of one number, 30 times as large as any other: first, last and in the middle of tensors that are no multiple
/// of a block or of a vector. The longest, of which threads take several elements each, is a hundred times as much work as the
/// others: one type, on a view without vectors, says what all would.
void append_largest(std::vector<OperationCase>& cases) {
  const auto of_largest = [](DType type, int place, int n) {
    const Shape shape(1, n);
    std::vector<float> numbers = random_numbers(shape, 1);
    numbers[static_cast<std::size_t>(place)] = -30;
    return OperationCase{join_name("cast", name_of(type), "largest", place, "of", n),
                         OpKind::cast,
                         {},
                         {read(shape, type, numbers), write(shape, DType::f8)}};
  };
  for (const DType type : trained_types) {
    for (const int n : {7, 1029}) {
      for (const int place : {0, n / 2, n - 1}) {
        cases.push_back(of_largest(type, place, n));
        cases.push_back(skewed(cases.back()));
      }
    }
  }
  constexpr int longest = 1024 * 256 + 1029;
  for (const int place : {0, longest / 2, longest - 1}) cases.push_back(skewed(of_largest(DType::f32, place, longest)));
}

}  // namespace

std::vector<OperationCase> cast_cases() {
  std::vector<OperationCase> cases;
  const std::array shapes{Shape(1, 1),   Shape(64, 64),  Shape(3, 2, 80), Shape(96, 208),
                          Shape(67, 33), Shape(16, 200), Shape(200, 16)};
  for (const Shape& shape : shapes) {
    const auto size = join_name("of", shape.elements() / shape[shape.rank - 1U], shape[shape.rank - 1U]);
    for (const DType type : trained_types) {
      CaseOperand by_columns = write(shape, DType::f8);
      by_columns.by_columns = true;
      cases.push_back({join_name("cast", name_of(type), "to_fp8", size),
                       OpKind::cast,
                       {},
                       {read(shape, type, random_numbers(shape, 1, 20)), write(shape, DType::f8), by_columns}});
      cases.push_back(skewed(cases.back()));
      cases.push_back({join_name("cast", name_of(type), "to_two", size),
                       OpKind::cast,
                       {},
                       {read(shape, type, 2), write(shape, DType::bf16), write(shape, DType::f32)}});
    }
  }
  append_largest(cases);
  CaseOperand zeros_by_columns = write(Shape(5, 7), DType::f8);
  zeros_by_columns.by_columns = true;
  cases.push_back({"cast_zeros",
                   OpKind::cast,
                   {},
                   {read(Shape(5, 7), DType::bf16, std::vector<float>(35, 0)), write(Shape(5, 7), DType::f8), zeros_by_columns}});
  return cases;
}

std::vector<OperationCase> adam_cases() {
  std::vector<OperationCase> cases;
  for (const DType gradient : trained_types) {
    for (const DType parameter : trained_types) {
      const DType moment = gradient == DType::f16 ? DType::bf16 : DType::f32;
      for (const int n : {3, 1029}) {
        const Shape shape(n);
        std::vector<float> variance = random_numbers(shape, 5);
        for (float& v : variance) v *= v;
        for (const float clip_norm : {0.0F, 1.0F, 100.0F}) {
          cases.push_back({join_name("adam", name_of(gradient), name_of(parameter), n, "clip", static_cast<int>(clip_norm)),
                           OpKind::adam,
                           AdamAttributes{.learning_rate = 0.1F, .clip_norm = clip_norm, .step = 3},
                           {read(shape, gradient, 1), read(Shape(1), DType::f32, std::vector{9.0F}), write(shape, parameter),
                            update(shape, DType::f32, 2), update(shape, moment, 3), update(shape, moment, variance)}});
        }
        cases.push_back(skewed(cases.back()));
      }
    }
  }
  return cases;
}

}  // namespace tandem::studies
