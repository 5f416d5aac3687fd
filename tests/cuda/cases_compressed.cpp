// Keys that stand for several positions, and residual streams side by side.
#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

void append_compression(std::vector<OperationCase>& cases, DType type, std::int32_t ratio, bool overlap, std::int64_t windows) {
  constexpr std::int64_t batch = 2, width = 10;
  const CompressAttributes attributes{.ratio = ratio, .overlap = overlap};
  const Shape rows(windows * ratio, batch, overlap ? 2 * width : width), bias(ratio, rows[2]), keys(windows, batch, width);
  const auto name = join_name(std::string(name_of(type)), ratio, overlap ? "overlap" : "apart");
  const CaseOperand c = read(rows, type, 1), z = read(rows, type, 2), b = read(bias, type, 3);
  cases.push_back({join_name("compress_keys", name), OpKind::compress_keys, attributes, {c, z, b, write(keys, type)}});
  for (const DType gradient : type == DType::f32 ? std::vector{type} : std::vector{type, DType::f32})
    cases.push_back(
        {join_name("compress_keys_backward", name, name_of(gradient)),
         OpKind::compress_keys_backward,
         attributes,
         {c, z, b, read(keys, type, 4), read(keys, type, 5), write(rows, type), write(rows, type), update(bias, gradient, 6)}});
}

void append_windows(std::vector<OperationCase>& cases, const std::string& name, const Positions& queries, bool names) {
  constexpr std::int64_t positions = 24, compressed = 6, batch = 2;
  constexpr std::int32_t window = 5;
  const SparseAttentionAttributes attributes{
      .queries = queries, .keys = {.start = {0, 0}, .length = {positions, compressed}}, .window = window, .ratio = 4};
  const Shape chosen(batch, queries.count(), window + compressed), listed(batch, queries.count(), compressed);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(listed.elements()), -1);
  for (std::size_t i = 0; i < numbers.size(); i += compressed)
    for (std::size_t j = 0; j < i / compressed % 4; ++j) numbers[i + j] = static_cast<std::int32_t>(j + i % 2);
  std::vector<CaseOperand> operands{write(chosen, DType::i32)};
  if (names) operands.insert(operands.begin(), read_integers(listed, numbers));
  cases.push_back({join_name("window_select", name, names ? "named" : "all"), OpKind::window_select, attributes, operands});
}

void append_streams(std::vector<OperationCase>& cases, DType type, int streams, int iterations, std::int64_t width) {
  const HyperAttributes attributes{.streams = streams, .iterations = iterations};
  constexpr std::int64_t s = 5, b = 3;
  const int gates = iterations > 0 ? streams * (streams + 2) : streams, factors = iterations > 0 ? 3 : 1;
  const Shape x(s, b, streams * width), one(s, b, width), of_gates(s * b, gates), base(1, factors + gates);
  const auto add = [&](OpKind kind, const std::string& more, std::vector<CaseOperand> operands) {
    cases.push_back({join_name(std::string(operation(kind).name), name_of(type), streams, iterations, width) + more, kind,
                     attributes, std::move(operands), 3e-5});
  };
  const CaseOperand in = read(x, type, 1), logits = read(of_gates, DType::f32, 2), of_base = read(base, type, 3);
  const CaseOperand given = read(of_gates, DType::f32, 4), made = read(one, type, 5);
  add(OpKind::hyper_gates, "", {in, logits, of_base, write(of_gates, DType::f32)});
  for (const DType gradient : type == DType::f32 ? std::vector{type} : std::vector{type, DType::f32})
    add(OpKind::hyper_gates_backward, "_" + std::string(name_of(gradient)),
        {in, logits, of_base, given, write(of_gates, DType::f32), update(x, type, 6), update(base, gradient, 7)});
  add(OpKind::hyper_gather, "", {in, given, write(one, type)});
  add(OpKind::hyper_gather_backward, "", {in, given, made, update(x, type, 6), update(of_gates, DType::f32, 7)});
  if (iterations == 0) return;
  add(OpKind::hyper_expand, "", {made, write(x, type)});
  add(OpKind::hyper_expand_backward, "", {in, write(one, type)});
  add(OpKind::hyper_merge, "", {in, given, made, write(x, type)});
  add(OpKind::hyper_merge_backward, "",
      {in, given, made, read(x, type, 8), write(x, type), write(one, type), write(of_gates, DType::f32)});
}

}  // namespace

std::vector<OperationCase> compressed_keys_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const bool overlap : {false, true}) {
      append_compression(cases, type, 4, overlap, 7);
      append_compression(cases, type, 33, overlap, 2);
    }
  for (const bool names : {false, true}) {
    append_windows(cases, "whole", {.start = {0, 0}, .length = {24, 0}}, names);
    append_windows(cases, "zigzag", {.start = {6, 12}, .length = {6, 6}}, names);
  }
  return cases;
}

std::vector<OperationCase> hyper_connection_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    append_streams(cases, type, 4, 20, 70);
    append_streams(cases, type, 2, 1, 7);
    append_streams(cases, type, 4, 0, 33);
    append_streams(cases, type, 8, 32, 16);
    append_streams(cases, type, 3, 5, 264);
    append_streams(cases, type, 4, 20, 1088);
  }
  append_streams(cases, DType::f32, 4, 0, 3072);  // rows of as much shared memory as a block is given unasked
  append_streams(cases, DType::f32, 4, 0, 4096);  // the longest rows held by a block: more shared memory than is given unasked
  append_streams(cases, DType::f32, 4, 0, 4800);  // and those that it reads twice
  return cases;
}

}  // namespace tandem::studies
