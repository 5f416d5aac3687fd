#include "cli/command.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "scenarios/reading/load.h"
#include "studies/report/step_report.h"

namespace tandem::cli {

namespace {

std::string not_empty(const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; }

}  // namespace

void ScenarioOptions::add_to(CLI::App& command) {
  command.add_option("scenario", scenario, "the scenario file")->required()->check(not_empty);
  command.add_option("--set", overrides, "override a field: parallelism.tp=4")->allow_extra_args(false)->take_all();
  command.add_option("--json", json, "write the result as JSON (- for standard output)")->check(not_empty);
}

void StepOptions::add_to(CLI::App& command) {
  ScenarioOptions::add_to(command);
  CLI::Option* option =
      command.add_option("--trace", trace,
                         "write the timeline: F.json in Chrome's format, any other file in Perfetto's, a folder "
                         "(DIR/) in Kineto's, a file per rank");
  option->check(not_empty);
  command
      .add_option(
          "--trace-ranks", trace_ranks,
          "which ranks --trace shows, such as 0,5,16-31; ranks that behave alike are shown once. Without it: all that were "
          "simulated or executed, if at most 64, or else of each pipeline stage the commonest and the slowest")
      ->needs(option)
      ->check([](const std::string& list) { return list.empty() ? "is empty, expected ranks such as 0,5,16-31" : ""; });
  command.add_option("--report", report, "write an HTML page that shows all of it")->check(not_empty);
  command.add_flag("--allow-oom", allow_oom, "go on when the scenario does not fit in memory");
  command.add_flag_callback(
      "--verbose", [] { spdlog::set_level(spdlog::level::debug); }, "say on standard error what is done");
}

Scenario load_with_warnings(const ScenarioOptions& options) {
  Scenario scenario = load_scenario(options.scenario, options.overrides);
  for (const std::string& warning : scenario.warnings) std::cerr << "tandem: warning: " << warning << '\n';
  return scenario;
}

void add_profile_option(CLI::App& command, ScenarioOptions& options) {
  command
      .add_option_function<std::string>(
          "--profile",
          [&options](const std::string& name) {
            const std::string path = std::filesystem::exists(name) ? std::filesystem::absolute(name).string() : name;
            std::string quoted;  // in YAML's double quotes
            for (const char c : path) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
            options.overrides.push_back("cluster.profile=\"" + quoted + '"');
          },
          "take kernel times from what `tandem calibrate` measured")
      ->check(not_empty);
}

void add_collectives_option(CLI::App& command, Collectives& collectives) {
  const std::map<std::string, Collectives> names{{"fluid", Collectives::fluid}, {"steps", Collectives::steps}};
  command
      .add_option_function<std::string>(
          "--collectives", [&collectives, names](const std::string& name) { collectives = names.at(name); },
          "fluid: each collective one flow; steps: each message of it, which takes every rank and longer")
      ->check(CLI::IsMember(names))
      ->type_name("fluid|steps");
}

Outputs::Outputs(const StepOptions& options, std::int64_t world) : options_(options) {
  if (!options.json.empty() && options.json != "-") json_ = std::make_unique<OutputFile>(options.json);
  if (!options.trace.empty()) trace_ = std::make_unique<TraceOutput>(options.trace, options.trace_ranks, world);
  if (!options.report.empty()) report_ = std::make_unique<OutputFile>(options.report);
}

void Outputs::write(const StepResult& result, const std::vector<TracedStep>& steps) {
  if (trace_) trace_->write(steps);
  if (json_) {
    json_->write(to_json(result));
    json_->commit();
  }
  if (options_.json == "-") std::cout << to_json(result);
}

void Outputs::write_report(const std::function<std::string()>& page) {
  if (!report_) return;
  report_->write(page());
  report_->commit();
}

ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::function<ExitCode()>& run) {
  try {
    return run();
  } catch (const InputError&) {
    throw;  // wrong input leaves nothing behind
  } catch (const std::exception& error) {
    outputs.write_report([&] { return failure_page(scenario, error.what()); });
    throw;
  }
}

std::string out_of_memory_sentence(const std::string& place, const StepResult& result) {
  const MemoryUse& stage = result.stages[result.fullest_stage()];
  const auto gb = [](Bytes bytes) { return static_cast<double>(bytes) / 1e9; };
  return fmt::format(
      "{}: stage {} needs {:.1f} GB of a GPU's {:.1f} GB (parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, activations "
      "{:.1f}, "
      "buffers {:.1f}); shard or recompute more, or pass --allow-oom",
      place, result.fullest_stage(), gb(stage.peak()), gb(result.gpu_memory), gb(stage.parameters), gb(stage.gradients),
      gb(stage.optimizer), gb(stage.activations), gb(stage.buffers));
}

}  // namespace tandem::cli
