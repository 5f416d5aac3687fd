#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/program.h"
#include "cli/shared_options.h"
#include "runtime/execution/execution_site.h"
#include "runtime/execution/launched_step.h"
#include "runtime/host/limits.h"
#include "runtime/host/loss.h"
#include "runtime/launch/secret.h"
#include "traces/dag_file.h"
#include "traces/formats.h"
#include "traces/timeline_file.h"

namespace tandem::cli {
namespace {

constexpr const char* program = "tandem-run";

struct Options {
  std::string dag, out, trace;
  BackendOptions backend;
};

std::unique_ptr<OutputFile> opened(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
}

/// All ranks in this process.
LaunchedStep execute_alone(const Options& options, const Dag& dag) {
  const auto ranks = static_cast<std::int64_t>(dag.ranks.size());
  refuse_too_many_ranks(ranks, options.dag, options.backend);
  const std::unique_ptr<ExecutionSite> site = make_site(options.backend, dag, options.dag);
  EndedTasks ended = 0;
  LaunchedStep step;
  step.collectives = site->verify_collectives();
  step.timeline = site->execute(ended);
  step.description = site->description();
  step.undated_step = site->undated_step();
  step.loss = mean_loss(site->numbers());
  return step;
}

ExitCode execute(const Options& options) {
  const Launch launch = launch_of_this_process();
  refuse_launch_on_host(launch, options.backend.backend);
  refuse_graphs_on_host(options.backend);
  const Dag dag = read_dag(options.dag);
  refuse_missing_ranks(dag, options.dag);
  const bool writes = launch.rank == 0;
  const auto out = opened(writes ? options.out : "");
  const auto trace = writes && !options.trace.empty() ? open_trace(options.trace) : nullptr;

  const std::optional<LaunchedStep> step =
      launch.size == 1 ? execute_alone(options, dag)
                       : execute_with_others(launch, dag, digest_of_file(options.dag),
                                             options.backend.graphs.value_or(simulated_scope(dag.software)));
  if (!step) return ExitCode::done;
  if (out) {
    out->write(to_bytes(dag, {step->timeline, step->description}));
    out->commit();
  }
  if (trace) warn_of_other_traces(program, trace->write({{"measured", &dag, &step->timeline}}));
  std::cout << fmt::format("{}: {} tasks on {} ranks in {:.6f} s ({})\n", dag.info.scenario, dag.tasks.size(), dag.ranks.size(),
                           step->timeline.makespan(), step->description)
            << (step->undated_step
                    ? fmt::format("{:.6f} s a step when nothing recorded when tasks begin and end\n", *step->undated_step)
                    : "")
            << loss_sentence(step->loss) << exact_collectives_sentence(step->collectives);
  refuse_broken_loss(step->loss);
  return ExitCode::done;
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Executes a training step that `tandem lower` wrote"};
  app.name(program);
  app.set_version_flag("--version", std::string(program) + " " TANDEM_VERSION);
  Options options;
  app.add_option("dag", options.dag, "the file that `tandem lower --out` wrote")->required()->check(not_empty);
  options.backend.add_to(app);
  app.add_option("--out", options.out, "write when each task ran, to be compared")->check(not_empty);
  app.add_option("--trace", options.trace, "write the timeline: " + trace_formats_text())->check(not_empty);
  if (const auto ended = parse(app, argc, argv)) return *ended;
  return guarded(program, [&] { return execute(options); });
}

}  // namespace
}  // namespace tandem::cli

int main(int argc, char** argv) {
  tandem::cli::start(tandem::cli::program);
  return tandem::cli::finished(tandem::cli::program, tandem::cli::run(argc, argv));
}
