#include "studies/lint/rendezvous.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/reading/load.h"
#include "scenarios/schedules/schedule_table.h"

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
                                .sends = task.op == OpKind::send,
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
  const std::int64_t micro_batches = std::min(t.micro_batches(p), 2 * p.pp);
  return parse_scenario(
      fmt::format("model: {{layers: {}, hidden: 8, heads: 1, ffn: 8, vocab: 16}}\n"
                  "cluster: {{preset: host, gpus: {}}}\n"
                  "parallelism: {{pp: {}, vpp: {}, dp: 1, zero: 0}}\n"
                  "training: {{sequence: 8, global_batch: {}, precision: fp32, schedule: {}, overlap: {{pp: {}}}}}\n",
                  p.pp * p.vpp, p.pp, p.pp, p.vpp, micro_batches, name_of(t.schedule), t.overlap_pp),
      "pipeline", {});
}

}  // namespace tandem::studies
