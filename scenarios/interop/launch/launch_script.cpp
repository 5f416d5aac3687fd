#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "runtime/base/divide_up.h"
#include "scenarios/interop/export_text.h"
#include "scenarios/interop/launch/launch.h"
#include "scenarios/interop/megatron/program_arguments.h"
#include "scenarios/interop/scenario_writers.h"

namespace tandem::scenarios {
namespace {

constexpr int rendezvous_port = 29500;  // torchrun's own

/// A script that starts pretrain_gpt.py on every node of the mesh, a rank on each GPU, in the environment that the scenario
/// assumes.
class LaunchScript {
 public:
  explicit LaunchScript(const ScenarioWithDocument& read)
      : scenario_(read.scenario),
        megatron_(megatron_arguments(read)),
        nccl_(nccl_environment(read)),
        arguments_(read_launch({.text = megatron_.text, .file = "arguments"}), "arguments") {
    const std::int64_t ranks = scenario_.parallelism.world_size();
    of_node_ = std::min<std::int64_t>(scenario_.cluster.gpus_per_node, ranks);
    nodes_ = divide_up(ranks, of_node_);
  }

  Exported for_torchrun() {
    out_.line("#!/bin/bash");
    out_.comment(fmt::format("{} on {} nodes of {} GPUs; on each of them: HEAD_NODE=.. NODE_RANK=0..{} bash THIS_FILE",
                             scenario_.name, nodes_, of_node_, nodes_ - 1));
    preamble();
    out_.line(fmt::format("torchrun --nnodes {} --nproc-per-node {} --node-rank \"${{NODE_RANK:-0}}\" \\", nodes_, of_node_));
    out_.line(fmt::format("  --master-addr \"${{HEAD_NODE:-localhost}}\" --master-port {} \\", rendezvous_port));
    return ended();
  }

  /// Ranks are numbered by the order of Slurm's nodes, and not by who comes first.
  Exported for_slurm() {
    out_.line("#!/bin/bash");
    std::string name = scenario_.name;
    std::ranges::replace(name, ' ', '_');
    out_.line(fmt::format("#SBATCH --job-name={}", name));
    out_.line(fmt::format("#SBATCH --nodes={}", nodes_));
    out_.line("#SBATCH --ntasks-per-node=1");
    out_.line(fmt::format("#SBATCH --gpus-per-node={}", of_node_));
    out_.line("#SBATCH --exclusive");
    out_.comment(fmt::format("{} on {} nodes of {} GPUs; sbatch THIS_FILE, with the account, partition and time of your site",
                             scenario_.name, nodes_, of_node_));
    preamble();
    out_.line("HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)");
    out_.line("export HEAD_NODE");
    out_.line("srun bash -c 'exec torchrun --node-rank \"$SLURM_NODEID\" --master-addr \"$HEAD_NODE\" \"$@\"' torchrun \\");
    out_.line(fmt::format("  --nnodes {} --nproc-per-node {} --master-port {} \\", nodes_, of_node_, rendezvous_port));
    return ended();
  }

 private:
  const Scenario& scenario_;
  Exported megatron_, nccl_;
  ProgramArguments arguments_;
  ExportText out_;
  std::int64_t nodes_ = 1, of_node_ = 1;

  void preamble() {
    out_.line("set -euo pipefail");
    environment();
    out_.line("\nMEGATRON_ARGS=(");
    // Those with several values are not the last, so that nothing behind the array can be taken for one more.
    std::vector<std::string> names = arguments_.names();
    std::ranges::stable_partition(names, [this](const std::string& name) { return arguments_.values(name).size() > 1; });
    for (const std::string& name : names) {
      std::string line = "  --" + name;
      for (const std::string& value : arguments_.values(name)) line += " " + in_shell(value);
      out_.line(line);
    }
    out_.line(")\n");
  }

  /// NCCL's variables with their reasons, and what Megatron-Core insists on below Blackwell with tensor or context parallelism.
  void environment() {
    const ParallelismSpec& p = scenario_.parallelism;
    if ((p.tp > 1 || p.cp > 1) && scenario_.cluster.gpu.architecture != Architecture::blackwell)
      out_.line("export CUDA_DEVICE_MAX_CONNECTIONS=1");
    for (std::size_t begin = 0; begin < nccl_.text.size();) {
      const std::size_t end = std::min(nccl_.text.find('\n', begin), nccl_.text.size());
      const std::string line = nccl_.text.substr(begin, end - begin);
      if (line.starts_with("NCCL_")) out_.line("export " + line);
      begin = end + 1;
    }
  }

  static std::string in_shell(const std::string& value) {
    const bool plain = std::ranges::all_of(value, [](unsigned char c) {
      return std::isalnum(c) != 0 || std::string_view("._-+/:,").find(static_cast<char>(c)) != std::string_view::npos;
    });
    return plain ? value : "'" + value + "'";
  }

  Exported ended() {
    out_.line("  pretrain_gpt.py \"${MEGATRON_ARGS[@]}\"");
    for (const Lost& lost : megatron_.lost) out_.lose(lost.field, lost.why);
    return out_.take();
  }
};

}  // namespace

/// Writes a script that each node runs, with torchrun (PyTorch 2, torch/distributed/run.py).
Exported torchrun_script(const ScenarioWithDocument& read) { return LaunchScript(read).for_torchrun(); }

/// Writes a batch script of Slurm (sbatch) that starts torchrun on each node.
Exported slurm_script(const ScenarioWithDocument& read) { return LaunchScript(read).for_slurm(); }

}  // namespace tandem::scenarios
