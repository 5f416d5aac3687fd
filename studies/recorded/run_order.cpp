#include "studies/recorded/run_order.h"

#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "runtime/base/input_error.h"

namespace tandem::studies {
namespace {

/// A task of the program of a class of ranks.
struct ClassTask {
  std::uint32_t task = 0, of_class = 0;
  auto operator<=>(const ClassTask&) const = default;
};

class Order {
 public:
  Order(const RecordedRun& run, const Partition& partition) : run_(run), partition_(partition) {
    const std::size_t classes = partition.ranks.count();
    waits_for_.resize(classes);
    followers_.resize(classes);
    for (std::uint32_t c = 0; c < classes; ++c) {
      const std::vector<RecordedTask>& tasks = program(c);
      waits_for_[c].assign(tasks.size(), 0);
      followers_[c].resize(tasks.size());
      for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        waits_for_[c][t] = static_cast<std::uint32_t>(tasks[t].after.size());
        for (const std::uint32_t before : tasks[t].after) followers_[c][before].push_back(t);
        if (tasks[t].kind == RecordedTask::Kind::exchange) members_[exchange_of({t, c})].push_back({t, c});
      }
    }
    for (const auto& [exchange, members] : members_) missing_[exchange] = members.size();
  }

  std::vector<std::vector<std::uint32_t>> find() {
    std::vector<std::vector<std::uint32_t>> order(waits_for_.size());
    for (std::uint32_t c = 0; c < waits_for_.size(); ++c)
      for (std::uint32_t t = 0; t < waits_for_[c].size(); ++t)
        if (waits_for_[c][t] == 0) release({t, c});
    while (!ready_.empty()) {
      const ClassTask next = ready_.top();
      ready_.pop();
      for (const ClassTask& one : unit_of(next)) {
        order[one.of_class].push_back(one.task);
        for (const std::uint32_t follower : followers_[one.of_class][one.task])
          if (--waits_for_[one.of_class][follower] == 0) release({follower, one.of_class});
      }
    }
    refuse_circle(order);
    return order;
  }

 private:
  using Exchange = std::tuple<std::uint32_t, std::uint32_t>;  ///< class of groups, call

  const RecordedRun& run_;
  const Partition& partition_;
  std::vector<std::vector<std::uint32_t>> waits_for_;               ///< by class and task
  std::vector<std::vector<std::vector<std::uint32_t>>> followers_;  ///< the same
  std::map<Exchange, std::vector<ClassTask>> members_;
  std::map<Exchange, std::size_t> missing_;
  std::priority_queue<ClassTask, std::vector<ClassTask>, std::greater<>> ready_;

  const RecordedRank& rank_of(std::uint32_t of_class) const { return run_.ranks[partition_.ranks.representative[of_class]]; }
  const std::vector<RecordedTask>& program(std::uint32_t of_class) const { return run_.programs[rank_of(of_class).program]; }
  const RecordedTask& at(const ClassTask& one) const { return program(one.of_class)[one.task]; }
  Exchange exchange_of(const ClassTask& one) const {
    return {partition_.communicators.of[rank_of(one.of_class).groups[at(one).slot]], at(one).call};
  }
  std::vector<ClassTask> unit_of(const ClassTask& one) const {
    if (at(one).kind != RecordedTask::Kind::exchange) return {one};
    return members_.at(exchange_of(one));
  }
  void release(const ClassTask& one) {
    if (at(one).kind == RecordedTask::Kind::exchange && --missing_[exchange_of(one)] > 0) return;
    ready_.push(one);
  }

  void refuse_circle(const std::vector<std::vector<std::uint32_t>>& order) const {
    for (std::uint32_t c = 0; c < order.size(); ++c) {
      if (order[c].size() == program(c).size()) continue;
      std::uint32_t stuck = 0;
      while (waits_for_[c][stuck] == 0 && missing_for(stuck, c) == 0) ++stuck;
      throw InputError({run_.name, 0, 0}, "the tasks of rank " + std::to_string(partition_.ranks.representative[c]) +
                                              " wait for each other or for other ranks in a circle, '" +
                                              run_.names[program(c)[stuck].name] +
                                              "' among them; expected a trace whose tasks can all run");
    }
  }
  std::size_t missing_for(std::uint32_t task, std::uint32_t of_class) const {
    const ClassTask one{task, of_class};
    return at(one).kind == RecordedTask::Kind::exchange ? missing_.at(exchange_of(one)) : 0;
  }
};

}  // namespace

std::vector<std::vector<std::uint32_t>> run_order(const RecordedRun& run, const Partition& partition) {
  return Order(run, partition).find();
}

}  // namespace tandem::studies
