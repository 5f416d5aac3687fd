#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

void append_columns(std::vector<OperationCase>& cases, DType type) {
  for (const std::vector<int>& widths :
       {std::vector{8}, {24, 8, 40}, {7, 2, 33}, {512, 64}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1600, 8}}) {
    std::vector<CaseOperand> from_parts, to_parts;
    int width = 0;
    for (const int part : widths) {
      from_parts.push_back(read(Shape(7, 3, part), type, static_cast<unsigned>(part)));
      to_parts.push_back(write(Shape(7, 3, part), type));
      width += part;
    }
    from_parts.push_back(write(Shape(7, 3, width), type));
    to_parts.insert(to_parts.begin(), read(Shape(7, 3, width), type, 1));
    cases.push_back({join_name("join_columns", name_of(type), width), OpKind::join_columns, {}, from_parts});
    cases.push_back({join_name("split_columns", name_of(type), width), OpKind::split_columns, {}, to_parts});
  }
}

void append_groups(std::vector<OperationCase>& cases, DType type) {
  for (const auto& [groups, head] : {std::pair(1, 8), std::pair(2, 64), std::pair(4, 5), std::pair(12, 3)}) {
    const Shape rows(5, 2, 12, head), packed(groups * 5, 2, 12 / groups, head);
    const GroupsAttributes attributes{groups};
    const auto name = join_name(std::string(name_of(type)), groups, "of", head);
    cases.push_back(
        {join_name("pack_groups", name), OpKind::pack_groups, attributes, {read(rows, type, 1), write(packed, type)}});
    cases.push_back(
        {join_name("unpack_groups", name), OpKind::unpack_groups, attributes, {read(packed, type, 1), write(rows, type)}});
  }
}

void append_sequence(std::vector<OperationCase>& cases, DType type) {
  for (const bool zigzag : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      for (const int width : {3, 16, 640}) {
        const Shape k(ranks * 4, 2, 2, width), v(ranks * 4, 2, 2, width / 2), parts(k.elements() + v.elements());
        const SequenceAttributes attributes{ranks, zigzag};
        const auto name = join_name(std::string(name_of(type)), zigzag ? "zigzag" : "runs", ranks, "of", width);
        cases.push_back({join_name("join_sequence", name),
                         OpKind::join_sequence,
                         attributes,
                         {read(parts, type, 1), write(k, type), write(v, type)}});
        cases.push_back({join_name("split_sequence", name),
                         OpKind::split_sequence,
                         attributes,
                         {read(k, type, 1), read(v, type, 2), write(parts, type)}});
      }
    }
  }
}

}  // namespace

std::vector<OperationCase> copy_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    append_columns(cases, type);
    append_groups(cases, type);
    append_sequence(cases, type);
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  for (OperationCase& c : cases) c.tolerance = 0;
  return cases;
}

}  // namespace tandem::studies
