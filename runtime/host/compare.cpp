#include "runtime/host/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "runtime/analysis/weights_from_host.h"
#include "runtime/host/loss.h"

namespace tandem {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The largest difference and the largest reference value seen. What is not a number differs infinitely.
class LargestDifference {
 public:
  void add(double value, double reference) {
    const double difference = std::abs(value - reference);
    difference_ = std::isnan(difference) ? infinite : std::max(difference_, difference);
    if (std::isfinite(reference)) magnitude_ = std::max(magnitude_, std::abs(reference));
  }
  double relative() const { return difference_ == 0 ? 0 : difference_ / magnitude_; }

 private:
  double difference_ = 0;
  double magnitude_ = 0;
};

/// Consecutive elements of a shard, from its element `first` on, that Adam updated.
struct Update {
  const ParameterShard& shard;
  std::size_t replica;  ///< data-parallel coordinate of the rank
  std::int64_t first;
  std::span<const float> gradient;
  std::span<const float> weight;

  /// Where element i of the update lies in the unsharded tensor, row by row.
  std::size_t index(std::size_t i) const {
    const std::int64_t in_shard = first + static_cast<std::int64_t>(i);
    const std::int64_t row = shard.row + in_shard / shard.columns;
    return static_cast<std::size_t>(row * shard.tensor_columns + shard.column + in_shard % shard.columns);
  }
};

/// Calls `visit(Update)` for all that Adam updated on any rank, once however many steps it took. Padding belongs to no shard and
/// is left out.
template <typename Visit>
void for_each_update(const HostMemory& memory, Visit visit) {
  const Dag& dag = memory.dag();
  std::unordered_map<BufferId, std::vector<const ParameterShard*>> shards_of_base;
  for (const ParameterShard& shard : dag.shards) shards_of_base[dag.buffers[shard.buffer].base].push_back(&shard);

  const std::map<BufferId, BufferId> copied = copied_from_host(dag);
  std::set<BufferId> visited;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::adam) continue;
    const std::span<const Operand> operands = dag.operands_of(id);  // gradient, norm; parameter, master, m, v
    if (!visited.insert(operands[2].buffer).second) continue;
    const auto replica = static_cast<std::size_t>(dag.ranks[dag.tasks[id].rank].dp);
    const float* gradient = memory.tensor(operands[0].buffer).f32();
    const auto back = copied.find(operands[2].buffer);
    const BufferId parameter = back == copied.end() ? operands[2].buffer : back->second;
    const float* weight = memory.tensor(parameter).f32();
    const Buffer& updated = dag.buffers[parameter];
    for (const ParameterShard* shard : shards_of_base[updated.base]) {
      const std::int64_t shard_begin = dag.buffers[shard->buffer].offset;
      const std::int64_t begin = std::max(updated.offset, shard_begin);
      const std::int64_t end = std::min(updated.offset + updated.shape.elements(), shard_begin + shard->rows * shard->columns);
      if (begin >= end) continue;
      const auto count = static_cast<std::size_t>(end - begin);
      visit(Update{*shard,
                   replica,
                   begin - shard_begin,
                   {gradient + begin - updated.offset, count},
                   {weight + begin - updated.offset, count}});
    }
  }
}

/// An unsharded tensor of the references, and what of it the step has been compared with.
struct Tensor {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::vector<float>> gradients;  ///< by reference
  std::vector<double> weight;                 ///< mean over the references
  std::vector<bool> covered;
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
    tensors.try_emplace(shard.tensor, shard.tensor_rows, shard.tensor_columns, references.size());
  }
  for (std::size_t r = 0; r < references.size(); ++r) {
    for_each_update(*references[r], [&](const Update& update) {
      Tensor& tensor = tensor_of(tensors, update.shard);
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
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.whole()) throw std::runtime_error("the step does not update all of '" + name + "'");
    result.tensors.push_back({name, tensor.gradient_difference.relative(), tensor.weight_difference.relative()});
  }
  return result;
}

double StepDifference::largest() const {
  double worst = loss;
  for (const TensorDifference& tensor : tensors) worst = std::max({worst, tensor.gradient, tensor.weight});
  return worst;
}

}  // namespace tandem
