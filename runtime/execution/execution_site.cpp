#include "runtime/execution/execution_site.h"

#include "runtime/base/input_error.h"
#include "runtime/contents/initial_values.h"
#include "runtime/execution/measured_runs.h"
#include "runtime/execution/read_buffers.h"
#include "runtime/execution/stored_types.h"
#include "runtime/host/backend.h"
#include "runtime/host/limits.h"
#include "runtime/plan/arena.h"

namespace tandem {
namespace {

class HostSite final : public ExecutionSite {
 public:
  explicit HostSite(const Dag& dag) : memory_(dag, data_seed) {}

  std::size_t verify_collectives() override { return tandem::verify_collectives(memory_.dag()); }
  Timeline execute(EndedTasks& ended) override {
    const std::unique_ptr<Backend> backend = make_host_backend(memory_);
    return tandem::execute(memory_.dag(), *backend, &ended);
  }
  const HostMemory& memory() override { return memory_; }
  std::string description() const override { return host_backend; }

 private:
  HostMemory memory_;
};

class GpuSite final : public ExecutionSite {
 public:
  GpuSite(const Dag& dag, GraphScope graphs)
      : dag_(stored_on_gpus(dag)), graphs_(graphs), gpu_(open_gpu()), step_(gpu_->make_step(dag_, {.graphs = graphs})) {}

  std::size_t verify_collectives() override { return step_->verify_collectives(); }
  Timeline execute(EndedTasks& ended) override {
    const MeasuredRuns runs = measure_runs(dag_, *step_, {.ended = &ended});
    undated_ = runs.undated / dag_.info.steps;
    return runs.timeline;
  }
  std::optional<Seconds> undated_step() const override { return undated_; }
  const HostMemory& memory() override {
    if (!memory_) memory_ = read_buffers(*step_, dag_, keeps_its_place);
    return *memory_;
  }
  const HostMemory& numbers() override {
    const auto is_number = [](const Buffer& buffer) { return buffer.shape.elements() == 1; };
    if (!numbers_) numbers_ = read_buffers(*step_, dag_, is_number);
    return *numbers_;
  }
  std::optional<Bytes> arena(RankIndex rank) const override { return step_->arena(rank); }
  std::string description() const override {
    const GpuInfo info = gpu_->info();
    return "cuda, " + info.name + ", " + info.versions + ", " + text_of(step_->graphs(), graphs_);
  }

 private:
  const Dag dag_;
  GraphScope graphs_;
  std::optional<Seconds> undated_;
  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<GpuStep> step_;
  std::optional<HostMemory> memory_, numbers_;
};

}  // namespace

std::string text_of(const GraphCount& count, GraphScope scope) {
  if (scope == GraphScope::none) return "no CUDA graphs";
  return std::to_string(count.graphs) + (count.graphs == 1 ? " CUDA graph" : " CUDA graphs") + " (" +
         std::string(name_of(scope)) + ", " + std::to_string(count.nodes) + " nodes)";
}

void refuse_graphs_on_host(const ExecutionChoice& choice) {
  if (choice.backend == host_backend && choice.graphs)
    throw std::runtime_error(
        "--graph makes CUDA graphs, of which the host backend has none; expected --backend cuda, or no --graph");
}

void refuse_too_many_ranks(std::int64_t ranks, const std::string& file, const ExecutionChoice& choice) {
  if (choice.backend == host_backend) return refuse_too_many_ranks(ranks, file);
  if (ranks <= std::int64_t{most_virtual_ranks}) return;
  throw InputError({file, 0, 0}, std::to_string(ranks) + " ranks are too many for one GPU; expected at most " +
                                     std::to_string(most_virtual_ranks) + ", or a GPU for each (tandem lower, then tandem-run)");
}

std::unique_ptr<ExecutionSite> make_site(const ExecutionChoice& choice, const Dag& dag, const std::string& file) {
  refuse_graphs_on_host(choice);
  if (choice.backend == cuda_backend)
    return std::make_unique<GpuSite>(dag, choice.graphs.value_or(simulated_scope(dag.software)));
  refuse_too_many_bytes(dag, file);
  return std::make_unique<HostSite>(dag);
}

}  // namespace tandem
