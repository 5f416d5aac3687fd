#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

std::string_view name_of_kind(NormKind kind) { return kind == NormKind::rms ? "rms" : "layer"; }

void append(std::vector<OperationCase>& cases, NormKind kind, const Shape& x, DType type, DType gradient) {
  const NormAttributes attributes{.kind = kind};
  const std::int64_t width = x[x.rank - 1U];
  const Shape weight(kind == NormKind::layer ? 2 : 1, width);
  const std::string of = join_name(std::string(name_of_kind(kind)), name_of(type), width);
  if (gradient == DType::f32)
    cases.push_back({join_name("norm", of), OpKind::norm, attributes, {read(x, type, 1), read(weight, type, 2), write(x, type)}});
  cases.push_back({join_name("norm_backward", of, name_of(gradient)),
                   OpKind::norm_backward,
                   attributes,
                   {read(x, type, 1), read(weight, type, 2), read(x, type, 3), write(x, type), update(weight, gradient, 4)}});
}

}  // namespace

std::vector<OperationCase> norm_cases() {
  std::vector<OperationCase> cases;
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (const DType type : trained_types) {
      // One vector; no multiple of one; one, two and four vectors per thread, the last ones in part; more than registers hold.
      for (const int width : {8, 37, 264, 1032, 5000, 8192, 16392})
        append(cases, kind, Shape(width > 5000 ? 2 : 3, 1, width), type, DType::f32);
      append(cases, kind, Shape(3, 2, 64), type, DType::bf16);
      cases.push_back(skewed(cases.back()));
    }
    append(cases, kind, Shape(70, 3, 40), DType::bf16, DType::f32);
  }
  append(cases, NormKind::layer, Shape(4100, 1, 16), DType::bf16, DType::f32);  // more rows than blocks
  for (const DType type : trained_types)
    for (const Shape& x : {Shape(3, 2, 5, 64), Shape(2, 1, 3, 37)}) {
      const auto name = join_name(std::string(name_of(type)), x[3]);
      cases.push_back({join_name("unit_norm", name), OpKind::unit_norm, NormAttributes{}, {read(x, type, 1), write(x, type)}});
      cases.push_back({join_name("unit_norm_backward", name),
                       OpKind::unit_norm_backward,
                       NormAttributes{},
                       {read(x, type, 1), read(x, type, 2), write(x, type)}});
    }
  for (const DType type : trained_types)
    for (const std::int64_t rows : {2, 16}) {
      const Shape x(3 * rows, 2, 37), y(3, 2, 37);
      const auto name = join_name(std::string(name_of(type)), rows);
      cases.push_back({join_name("pool_rows", name), OpKind::pool_rows, {}, {read(x, type, 1), write(y, type)}});
      cases.push_back(
          {join_name("pool_rows_backward", name), OpKind::pool_rows_backward, {}, {read(y, type, 1), write(x, type)}});
    }
  return cases;
}

}  // namespace tandem::studies
