#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// Documents of two sequences of 11, or 12 in two parts: some of one token, some that begin where a chunk of 4 does.
const Documents packed_11{.sequence = 11, .starts = {0, 3, 4, 11, 12, 19}};
const Documents packed_12{.sequence = 12, .parts = 2, .starts = {0, 4, 6, 12, 20, 22}};

std::string name_of_documents(const Documents& documents) {
  return documents.starts.empty() ? "whole" : documents.parts > 1 ? "packed_in_parts" : "packed";
}

void append_conv(std::vector<OperationCase>& cases, DType type, const Shape& x, const CausalConvAttributes& attributes,
                 int taps) {
  const Shape weight(attributes.row[0] + 40, taps + (attributes.biased ? 1 : 0)), y(x[0], x[1], attributes.channels());
  const auto name = join_name(std::string(name_of(type)), attributes.channels(), taps, name_of_documents(attributes.documents));
  cases.push_back({join_name("causal_conv", name),
                   OpKind::causal_conv,
                   attributes,
                   {read(x, type, 1), read(weight, type, 2), write(y, type)}});
  cases.push_back(
      {join_name("causal_conv_backward", name),
       OpKind::causal_conv_backward,
       attributes,
       {read(x, type, 1), read(weight, type, 2), read(y, type, 3), update(x, type, 4), update(weight, DType::f32, 5)}});
}

void append_scan(std::vector<OperationCase>& cases, DType type, const SsdAttributes& n, int positions, int heads, int all_heads) {
  const std::int64_t inner = heads * n.head_dim, keys = 2 * n.groups * n.state;
  const Shape mixed(positions, 2, inner + keys), projected(positions, 2, 2 * inner + keys + heads), parameters(3 * all_heads, 1);
  const Shape out(positions, 2, inner);
  const auto name = join_name(std::string(name_of(type)), positions, heads, n.head_dim, n.state, name_of_documents(n.documents));
  cases.push_back(
      {join_name("ssd_scan", name),
       OpKind::ssd_scan,
       n,
       {read(mixed, type, 1), read(projected, type, 2), read(parameters, type, 3), write(out, type), write(out, type)}});
  cases.push_back({join_name("ssd_scan_backward", name),
                   OpKind::ssd_scan_backward,
                   n,
                   {read(mixed, type, 1), read(projected, type, 2), read(parameters, type, 3), read(out, type, 4),
                    read(out, type, 5), write(mixed, type), update(projected, type, 6), update(parameters, DType::f32, 7)}});
}

void append_rule(std::vector<OperationCase>& cases, DType type, const DeltaRuleAttributes& n, int positions, int heads,
                 int all_heads) {
  const std::int64_t width = 2 * n.key_heads * n.key_dim + heads * n.value_dim;
  const Shape mixed(positions, 2, width), projected(positions, 2, width + heads * n.value_dim + 2 * heads);
  const Shape parameters(2 * all_heads, 1), out(positions, 2, heads * n.value_dim);
  const auto name =
      join_name(std::string(name_of(type)), positions, heads, n.key_dim, n.value_dim, name_of_documents(n.documents));
  cases.push_back({join_name("delta_rule", name),
                   OpKind::delta_rule,
                   n,
                   {read(mixed, type, 1), read(projected, type, 2), read(parameters, type, 3), write(out, type)}});
  cases.push_back({join_name("delta_rule_backward", name),
                   OpKind::delta_rule_backward,
                   n,
                   {read(mixed, type, 1), read(projected, type, 2), read(parameters, type, 3), read(out, type, 4),
                    write(mixed, type), update(projected, type, 5), update(parameters, DType::f32, 6)}});
}

void append_norm(std::vector<OperationCase>& cases, DType type, int groups, int width, bool gated, bool one_weight) {
  const GroupNormAttributes attributes{.groups = groups, .gate_column = gated ? groups * width : 0};
  // The gate is the middle of three parts of a row.
  const Shape x(5, 2, groups * width), gate(5, 2, gated ? 3 * groups * width : 1), weight(1, one_weight ? width : groups * width);
  const auto name = join_name(std::string(name_of(type)), groups, width, gated ? "gated" : "open");
  if (gated) {
    cases.push_back({join_name("group_norm", name),
                     OpKind::group_norm,
                     attributes,
                     {read(x, type, 1), read(weight, type, 2), read(gate, type, 3), write(x, type)}});
    cases.push_back({join_name("group_norm_backward", name),
                     OpKind::group_norm_backward,
                     attributes,
                     {read(x, type, 1), read(weight, type, 2), read(gate, type, 3), read(x, type, 4), write(x, type),
                      update(gate, type, 6), update(weight, DType::f32, 5)}});
  } else {
    cases.push_back({join_name("group_norm", name),
                     OpKind::group_norm,
                     attributes,
                     {read(x, type, 1), read(weight, type, 2), write(x, type)}});
    cases.push_back({join_name("group_norm_backward", name),
                     OpKind::group_norm_backward,
                     attributes,
                     {read(x, type, 1), read(weight, type, 2), read(x, type, 4), write(x, type), update(weight, DType::f32, 5)}});
  }
}

/// `times` as wide: 8 and more fill whole vectors.
void append_parts(std::vector<OperationCase>& cases, DType type, bool zigzag, bool inverse, int times) {
  const ColumnPartsAttributes attributes{
      .ranks = 4, .zigzag = zigzag, .inverse = inverse, .widths = {24 * times, 6 * times, 4 * times}, .repeats = {1, 2, 1}};
  const Shape rows(6, 2, 34 * times), flat(6 * 2 * (24 + 12 + 4) * times), ordered(24, 2, 10 * times);
  const auto name = join_name(std::string(name_of(type)), zigzag ? "zigzag" : "runs", inverse ? "back" : "there", times);
  const Shape &from = inverse ? flat : rows, &to = inverse ? rows : flat;
  cases.push_back({join_name("pack_parts", name), OpKind::pack_parts, attributes, {read(from, type, 1), write(to, type)}});
  const Shape &unordered = inverse ? ordered : flat, &in_order = inverse ? flat : ordered;
  cases.push_back(
      {join_name("order_parts", name), OpKind::order_parts, attributes, {read(unordered, type, 1), write(in_order, type)}});
}

}  // namespace

std::vector<OperationCase> mamba_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    append_conv(cases, type, Shape(9, 2, 50), {.first_column = 3, .row = {5, 40, 0}, .rows = {20, 5, 5}, .biased = true}, 4);
    append_conv(cases, type, Shape(3, 1, 7), {.first_column = 0, .row = {0, 0, 0}, .rows = {7, 0, 0}, .biased = false}, 5);
    for (const int taps : {2, 4, 6})  // vectors of channels, several slices of positions
      append_conv(cases, type, Shape(75, 2, 48), {.first_column = 8, .row = {5, 30, 22}, .rows = {16, 8, 8}, .biased = taps > 2},
                  taps);
    append_scan(cases, type, {.head_dim = 8, .groups = 2, .state = 6, .chunk = 4, .first_head = 2}, 11, 4, 6);
    append_scan(cases, type, {.head_dim = 5, .groups = 1, .state = 16, .chunk = 16, .first_head = 0}, 7, 3, 3);
    append_rule(cases, type, {.key_heads = 2, .key_dim = 8, .value_dim = 6, .chunk = 4, .first_head = 2}, 11, 4, 6);
    append_rule(cases, type, {.key_heads = 3, .key_dim = 5, .value_dim = 16, .chunk = 16, .first_head = 0}, 7, 3, 3);
    for (const Documents& documents : {packed_11, packed_12}) {
      const int positions = documents.sequence;
      append_conv(cases, type, Shape(positions, 2, 9),
                  {.first_column = 1, .row = {0, 0, 0}, .rows = {8, 0, 0}, .biased = true, .documents = documents}, 4);
      append_conv(cases, type, Shape(positions, 2, 16),
                  {.first_column = 4, .row = {0, 0, 0}, .rows = {12, 0, 0}, .biased = true, .documents = documents}, 3);
      append_scan(cases, type, {.head_dim = 8, .groups = 2, .state = 6, .chunk = 4, .first_head = 2, .documents = documents},
                  positions, 4, 6);
      append_rule(cases, type,
                  {.key_heads = 2, .key_dim = 8, .value_dim = 6, .chunk = 4, .first_head = 2, .documents = documents}, positions,
                  4, 6);
    }
    append_norm(cases, type, 4, 10, false, false);
    append_norm(cases, type, 3, 150, true, true);
    append_norm(cases, type, 1, 33, true, false);
    append_norm(cases, type, 6, 64, true, true);
    append_norm(cases, type, 3, 512, true, false);
    append_norm(cases, type, 2, 1024, false, false);
    append_norm(cases, type, 1, 4104, false, true);
    for (const bool zigzag : {false, true})
      for (const bool inverse : {false, true})
        for (const int times : {1, 8, 40}) append_parts(cases, type, zigzag, inverse, times);
  }
  return cases;
}

}  // namespace tandem::studies
