#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/terminal/page.h"
#include "cli/terminal/progress.h"
#include "cli/text/crosscheck_text.h"
#include "runtime/base/input_error.h"
#include "sim/simulate.h"
#include "studies/crosscheck/comparison.h"
#include "studies/report/step_report.h"
#include "studies/step/executed_step.h"
#include "traces/timeline_file.h"

namespace tandem::cli {
namespace {

/// What the simulation is held against, and the DAG of both.
class ComparedStep {
 public:
  virtual ~ComparedStep() = default;
  virtual const Dag& dag() const = 0;
  virtual void measure(ProgressBar&) {}
  virtual const Timeline& timeline() const = 0;
  virtual StepResult result() const = 0;
  /// By rank, what its memory held at most; nothing where nobody can tell.
  virtual std::vector<Bytes> peaks() const { return {}; }
  virtual std::string executed_on() const = 0;
  /// What else was found, as a line.
  virtual std::string findings() const { return ""; }
};

/// Here and now.
class StepOfThisMachine final : public ComparedStep {
 public:
  StepOfThisMachine(const Scenario& scenario, const std::string& file, const BackendOptions& backend, bool hops)
      : step_(scenario, file, backend, period_of(scenario), hops) {}

  const Dag& dag() const override { return step_.dag(); }
  void measure(ProgressBar& bar) override {
    kinds_ = step_.verify_collectives();
    step_.execute(&bar);
  }
  const Timeline& timeline() const override { return step_.timeline(); }
  StepResult result() const override { return step_.result(); }
  std::vector<Bytes> peaks() const override {
    std::vector<Bytes> peaks;
    for (RankIndex rank = 0; rank < dag().ranks.size(); ++rank) {
      const std::optional<Bytes> arena = step_.site().arena(rank);
      if (!arena) return {};
      peaks.push_back(*arena);
    }
    return peaks;
  }
  std::string executed_on() const override { return step_.site().description(); }
  std::string findings() const override { return fmt::format("{} kinds of collectives exact on crafted data\n", kinds_); }

 private:
  ExecutedStep step_;
  std::size_t kinds_ = 0;
};

/// Elsewhere, by tandem-run.
class StepOfAFile final : public ComparedStep {
 public:
  StepOfAFile(const Scenario& scenario, const std::string& file, const std::string& measured, bool hops)
      : precision_(scenario.training.precision),
        dag_(lower_to_carry(scenario, file, hops)),
        measured_(read_timeline(measured, dag_)) {
    if (timeline().makespan() <= 0) throw InputError({measured, 0, 0}, "takes no time, expected the timeline of a step");
  }

  const Dag& dag() const override { return dag_; }
  const Timeline& timeline() const override { return measured_.timeline; }
  StepResult result() const override {
    const std::string& where = measured_.executed_on;
    return summarize(dag_, timeline(), precision_,
                     {.backend = where.substr(0, where.find(',')), .folded = false, .wall = 0, .peak_rss = peak_rss()});
  }
  std::string executed_on() const override { return measured_.executed_on; }

 private:
  DType precision_;
  Dag dag_;
  MeasuredTimeline measured_;
};

}  // namespace

CLI::App* CrosscheckCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crosscheck", "simulate and execute the same DAG, task by task");
  options.add_to(*command);
  backend.backend.clear();
  CLI::Option* const here = backend.add_to(*command)->required(false);
  command->add_option("--measured", measured, "do not execute: take the timeline of this scenario that tandem-run --out wrote")
      ->check([](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; })
      ->excludes(here);
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode CrosscheckCommand::run() const {
  if (backend.backend.empty() && measured.empty())
    throw InputError({options.scenario, 0, 0},
                     "is held against nothing; expected --backend host or cuda, or --measured F as well");
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, [&] { return run(scenario, outputs); });
}

ExitCode CrosscheckCommand::run(const Scenario& scenario, Outputs& outputs) const {
  const bool hops = collectives == Collectives::steps;
  std::unique_ptr<ComparedStep> step;
  if (measured.empty())
    step = std::make_unique<StepOfThisMachine>(scenario, options.scenario, backend, hops);
  else
    step = std::make_unique<StepOfAFile>(scenario, options.scenario, measured, hops);
  const Dag& dag = step->dag();
  ProgressBar bar;
  const SimulationRun simulated = simulate(dag, collectives, {}, shown_in(&bar, "simulating"));
  step->measure(bar);
  bar.take_away();

  StepResult result = step->result();
  result.warnings = scenario.warnings;
  result.run.collectives = name_of(collectives);
  result.comparison = compare(dag, simulated.timeline, step->timeline(), step->peaks());
  outputs.write(result, {{"simulated", &dag, &simulated.timeline, true}, {"measured", &dag, &step->timeline()}});
  outputs.write_report([&] { return crosscheck_page(scenario, dag, simulated.timeline, step->timeline(), result); });
  const bool json_goes_out = options.json == "-";
  std::ostream& out = json_goes_out ? std::cerr : std::cout;
  const Screen screen = screen_on(json_goes_out ? STDERR_FILENO : STDOUT_FILENO);
  out << Page(screen)
             .line(fmt::format("{}: {} ranks, {} tasks, simulated and executed ({})", scenario.name, dag.ranks.size(),
                               dag.tasks.size(), step->executed_on()),
                   Style::strong)
             .empty_line()
             .text()
      << to_text(*result.comparison, screen) << step->findings();
  return result.comparison->same_order() ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem::cli
