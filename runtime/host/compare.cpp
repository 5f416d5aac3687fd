#include "runtime/host/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "runtime/host/loss.h"
#include "runtime/host/updates.h"

namespace tandem {
namespace {

/// Of the step's largest gradient: gradients below are zero but for rounding (TensorDifference).
constexpr double least_gradient = 1e-3;
constexpr double infinite = std::numeric_limits<double>::infinity();

/// The largest difference and the largest reference value seen. What is not a number differs infinitely.
class LargestDifference {
 public:
  void add(double value, double reference) {
    const double difference = std::abs(value - reference);
    difference_ = std::isnan(difference) ? infinite : std::max(difference_, difference);
    if (std::isfinite(reference)) magnitude_ = std::max(magnitude_, std::abs(reference));
  }
  /// To the largest reference value, or to `least` where that is more.
  double relative(double least = 0) const { return difference_ == 0 ? 0 : difference_ / std::max(magnitude_, least); }
  double magnitude() const { return magnitude_; }

 private:
  double difference_ = 0;
  double magnitude_ = 0;
};

/// An unsharded tensor of the references, and what of it the step has been compared with.
struct Tensor {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::vector<float>> gradients;  ///< by reference
  std::vector<double> weight;                 ///< mean over the references
  std::vector<bool> covered;
  bool follows_counts = false;  ///< biases of experts, whose "gradients" are choices (OptimizerUpdate)
  LargestDifference gradient_difference;
  LargestDifference weight_difference;

  Tensor(std::int64_t r, std::int64_t c, std::size_t references)
      : rows(r), columns(c), gradients(references, std::vector<float>(elements())), weight(elements()), covered(elements()) {}
  std::size_t elements() const { return static_cast<std::size_t>(rows * columns); }
  bool whole() const { return std::ranges::find(covered, false) == covered.end(); }
};

using Tensors = std::map<std::string, Tensor>;

Tensor& tensor_of(Tensors& tensors, const ParameterShard& shard) {
  const auto found = tensors.find(shard.tensor);
  if (found == tensors.end()) throw std::runtime_error("the reference has no tensor '" + shard.tensor + "'");
  const bool inside = shard.row + shard.rows <= shard.tensor_rows && shard.column + shard.columns <= shard.tensor_columns;
  if (!inside || shard.tensor_rows != found->second.rows || shard.tensor_columns != found->second.columns) {
    throw std::runtime_error("a shard of '" + shard.tensor + "' does not lie in the reference's tensor");
  }
  return found->second;
}

Tensors reference_tensors(std::span<const HostMemory* const> references) {
  Tensors tensors;
  for (const ParameterShard& shard : references.front()->dag().shards) {
    if (shard.frozen) continue;
    tensors.try_emplace(shard.tensor, shard.tensor_rows, shard.tensor_columns, references.size());
  }
  for (std::size_t r = 0; r < references.size(); ++r) {
    for_each_update(*references[r], [&](const Update& update) {
      Tensor& tensor = tensor_of(tensors, update.shard);
      tensor.follows_counts = update.follows_counts;
      for (std::size_t i = 0; i < update.weight.size(); ++i) {
        const std::size_t at = update.index(i);
        tensor.gradients[r][at] = update.gradient[i];
        tensor.weight[at] += update.weight[i] / static_cast<double>(references.size());
        tensor.covered[at] = true;
      }
    });
    for (auto& [name, tensor] : tensors) {
      if (!tensor.whole()) throw std::runtime_error("the reference step does not update all of '" + name + "'");
      tensor.covered.assign(tensor.elements(), false);  // from here on: by the next reference, or the step
    }
  }
  return tensors;
}

}  // namespace

StepDifference compare(const HostMemory& step, const HostMemory& reference) {
  const HostMemory* const only = &reference;
  return compare(step, std::span(&only, 1));
}

StepDifference compare(const HostMemory& step, std::span<const HostMemory* const> references) {
  Tensors tensors = reference_tensors(references);
  for_each_update(step, [&](const Update& update) {
    Tensor& tensor = tensor_of(tensors, update.shard);
    for (std::size_t i = 0; i < update.weight.size(); ++i) {
      const std::size_t at = update.index(i);
      const std::size_t reference = references.size() == 1 ? 0 : update.replica;
      tensor.gradient_difference.add(update.gradient[i], tensor.gradients.at(reference)[at]);
      tensor.weight_difference.add(update.weight[i], tensor.weight[at]);
      tensor.covered[at] = true;
    }
  });

  StepDifference result;
  for (const HostMemory* reference : references)
    result.reference_loss += mean_loss(*reference) / static_cast<double>(references.size());
  LargestDifference loss;
  loss.add(mean_loss(step) / static_cast<double>(references.size()), result.reference_loss);
  result.loss = loss.relative();
  double largest_gradient = 0;
  for (const auto& [name, tensor] : tensors)
    if (!tensor.follows_counts) largest_gradient = std::max(largest_gradient, tensor.gradient_difference.magnitude());
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.whole()) throw std::runtime_error("the step does not update all of '" + name + "'");
    result.tensors.push_back(
        {name, tensor.gradient_difference.relative(least_gradient * largest_gradient), tensor.weight_difference.relative()});
  }
  return result;
}

double StepDifference::largest() const {
  double worst = loss;
  for (const TensorDifference& tensor : tensors) worst = std::max({worst, tensor.gradient, tensor.weight});
  return worst;
}

}  // namespace tandem
