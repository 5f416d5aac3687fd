#include "tests/end_to_end/measured_operators.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/gemm_cost.h"
#include "tests/end_to_end/accuracy.h"

namespace tandem::studies {
namespace {

using OperatorKey = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;

std::string name_of_pass(Phase phase) {
  return phase == Phase::backward_input ? "input" : phase == Phase::backward_weight ? "weight" : "forward";
}

/// A kernel's part of the step, and its row of the table; none where another kernel's row covers it.
struct PlacedOperator {
  std::string part;
  std::optional<OperatorKey> key;
};

PlacedOperator placed_product(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  const std::vector<sim::GemmBatch> batches = sim::products_of(kernel_of(dag, id));
  auto [m, n, k] = batches.front().size;
  std::int64_t count = 0;
  for (const sim::GemmBatch& batch : batches) count += batch.count;
  const std::string pass = name_of_pass(task.phase);
  if (pass == "weight" && m > n) std::swap(m, n);  // G'X and X'G are one product
  return {std::string(task.op == OpKind::gemm ? "products" : "experts' products") +
              (pass == "forward" ? " forward" : " of " + pass + " gradients"),
          OperatorKey{operation(task.op).name, pass, std::to_string(count), m, n, k}};
}

PlacedOperator placed_attention(const std::string& pass, const TimedKernel& kernel) {
  const Shape &q = kernel.operands[0].shape, &k = kernel.operands[1].shape, &v = kernel.operands[2].shape;
  return {"attention " + pass,
          OperatorKey{"attention", pass, std::to_string(q[2]) + "/" + std::to_string(k[2]), q[0], k[0], q[3] + v[3]}};
}

/// `tokens` T h elements, `choices` [T,k]
PlacedOperator placed_permutation(const std::string& pass, const Shape& tokens, const Shape& choices) {
  return {"permutation " + pass, OperatorKey{"permutation", pass, "1", choices[0], tokens.elements() / choices[0], choices[1]}};
}

std::optional<PlacedOperator> placed_operator(const Dag& dag, TaskId id) {
  const auto shape = [&](std::size_t operand) { return kernel_of(dag, id).operands.at(operand).shape; };
  switch (dag.tasks[id].op) {
    case OpKind::gemm:
    case OpKind::grouped_gemm:
      return placed_product(dag, id);
    case OpKind::attention:
      return placed_attention("forward", kernel_of(dag, id));
    case OpKind::attention_backward:
      return placed_attention("backward", kernel_of(dag, id));
    case OpKind::permute:
      return placed_permutation("forward", shape(0), shape(1));
    case OpKind::combine:
      return placed_permutation("forward", shape(3), shape(1));
    case OpKind::permute_backward:
      return placed_permutation("backward", shape(2), shape(1));
    case OpKind::combine_backward:
      return placed_permutation("backward", shape(0), shape(2));
    case OpKind::cross_entropy_max:
    case OpKind::cross_entropy_sum:
    case OpKind::cross_entropy_target:
    case OpKind::cross_entropy_loss:
      return PlacedOperator{"cross entropy", std::nullopt};
    case OpKind::cross_entropy_backward:
      return PlacedOperator{"cross entropy",
                            OperatorKey{"cross entropy", "both", "1", shape(0)[0] * shape(0)[1], shape(0)[2], 1}};
    default:
      return std::nullopt;
  }
}

}  // namespace

MeasuredOperators::MeasuredOperators() {
  for (const MeasuredRow& row : measured_rows("operators.csv")) {
    std::int64_t m = std::stoll(row.at("m")), n = std::stoll(row.at("n"));
    if (row.at("pass") == "weight" && m > n) std::swap(m, n);
    times_[{row.at("kernel"), row.at("pass"), row.at("count"), m, n, std::stoll(row.at("k"))}].push_back(
        std::stod(row.at("time_us")) * 1e-6);
  }
}

std::string MeasuredOperators::text_of(const Key& key) {
  const auto& [kernel, pass, count, m, n, k] = key;
  return fmt::format("{},{},{},{},{},{}", kernel, pass, count, m, n, k);
}

MeasuredOperators::OfStep MeasuredOperators::of_step(const Dag& dag, const Timeline& timeline, RankIndex rank) const {
  OfStep step;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != rank) continue;
    const std::optional<PlacedOperator> placed = placed_operator(dag, id);
    if (!placed) continue;
    step.predicted[placed->part] += timeline.duration(id);
    if (!placed->key) continue;
    const auto found = times_.find(*placed->key);
    if (found == times_.end()) {
      step.unknown.insert(text_of(*placed->key));
      continue;
    }
    const std::vector<Seconds>& times = found->second;
    step.measured[placed->part] += std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  }
  return step;
}

}  // namespace tandem::studies
