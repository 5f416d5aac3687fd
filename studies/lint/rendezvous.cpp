#include "studies/lint/rendezvous.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "scenarios/checks/complete.h"
#include "scenarios/reading/preset_specs.h"

namespace tandem::studies {
namespace {

/// How far each rank is, and which transfers of its current batch are done.
class Rendezvous {
 public:
  explicit Rendezvous(const RankTransfers& ranks) : ranks_(ranks), at_(ranks.size(), 0) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) post(rank);
  }

  /// True when all are done.
  bool play() {
    while (!meeting_.empty()) {
      const std::uint32_t id = meeting_.back();
      meeting_.pop_back();
      const std::vector<std::uint32_t> both = posted_.at(id);
      posted_.erase(id);
      for (const std::uint32_t rank : both)
        if (--open_[rank] == 0) {
          ++at_[rank];
          post(rank);
        }
    }
    return posted_.empty();
  }

  /// From rank to a rank that it waits for, until one comes again.
  std::vector<std::string> circle() const {
    std::uint32_t rank = 0;
    while (at_[rank] >= ranks_[rank].size()) ++rank;
    std::vector<std::uint32_t> way;
    while (std::ranges::find(way, rank) == way.end()) {
      way.push_back(rank);
      rank = waits(rank).peer;
    }
    way.erase(way.begin(), std::ranges::find(way, rank));
    std::ranges::rotate(way, std::ranges::min_element(way));
    std::vector<std::string> sentences;
    for (const std::uint32_t one : way)
      sentences.push_back(fmt::format("stage {} waits with {} for stage {}", one, waits(one).name, waits(one).peer));
    return sentences;
  }

 private:
  const RankTransfers& ranks_;
  std::vector<std::size_t> at_;  ///< by rank: its current batch
  std::map<std::uint32_t, std::size_t> open_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> posted_;  ///< by transfer: the sides that are there
  std::vector<std::uint32_t> meeting_;                          ///< where both are

  void post(std::uint32_t rank) {
    while (at_[rank] < ranks_[rank].size() && ranks_[rank][at_[rank]].empty()) ++at_[rank];
    if (at_[rank] == ranks_[rank].size()) return;
    const Batch& batch = ranks_[rank][at_[rank]];
    open_[rank] = batch.size();
    for (const Transfer& transfer : batch) {
      std::vector<std::uint32_t>& sides = posted_[transfer.id];
      sides.push_back(rank);
      if (sides.size() == 2) meeting_.push_back(transfer.id);
    }
  }

  /// A transfer of the current batch whose other side is not there.
  const Transfer& waits(std::uint32_t rank) const {
    const Batch& batch = ranks_[rank].at(at_[rank]);
    return *std::ranges::find_if(batch, [&](const Transfer& transfer) { return posted_.contains(transfer.id); });
  }
};

}  // namespace

RankTransfers pipeline_transfers(const Dag& dag, bool batched) {
  RankTransfers ranks(dag.ranks.size());
  std::vector<bool> computed(dag.ranks.size(), true);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const bool transfer = task.axis == Axis::pp && (task.op == OpKind::send || task.op == OpKind::receive);
    if (!transfer) {
      computed[task.rank] = computed[task.rank] || !is_communication(task.op);
      continue;
    }
    std::vector<Batch>& batches = ranks[task.rank];
    if (!batched || computed[task.rank] || batches.empty()) batches.emplace_back();
    computed[task.rank] = false;
    for (const TaskId member : dag.members_of(task.group)) {
      if (member == id) continue;
      batches.back().push_back({.peer = dag.tasks[member].rank,
                                .id = task.group,
                                .name = fmt::format("{} of micro-batch {}", dag.name_of_task(id), task.micro_batch)});
    }
  }
  return ranks;
}

std::vector<std::string> circle_of(const RankTransfers& ranks) {
  Rendezvous rendezvous(ranks);
  return rendezvous.play() ? std::vector<std::string>{} : rendezvous.circle();
}

Scenario pipeline_in_small(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  constexpr std::int64_t width = 8;
  Scenario small;
  small.name = "pipeline";
  small.model.layers = p.pp * p.vpp;
  small.model.hidden = small.model.head_dim = small.model.ffn = width;
  small.model.heads = small.model.kv_heads = 1;
  small.model.vocab = 2 * width;
  small.cluster = cluster_preset("host");
  small.cluster.gpus = p.pp;
  small.cluster.gpus_per_node = std::max(small.cluster.gpus_per_node, p.pp);
  small.parallelism.pp = p.pp;
  small.parallelism.vpp = p.vpp;
  small.parallelism.zero = 0;
  small.training.sequence = width;
  small.training.global_batch = std::min(t.micro_batches(p), 2 * p.pp);
  small.training.precision = DType::f32;
  small.training.schedule = t.schedule;
  small.training.overlap_pp = t.overlap_pp;
  complete(small);
  return small;
}

}  // namespace tandem::studies
