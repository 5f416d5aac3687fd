#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "cli/backend_option.h"
#include "cli/program.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/contents/initial_values.h"
#include "runtime/host/limits.h"
#include "runtime/host/loss.h"
#include "traces/dag_file.h"
#include "traces/timeline_file.h"
#include "traces/trace.h"

namespace {

using tandem::ExitCode;

constexpr const char* program = "tandem-run";

struct Options {
  std::string dag, backend, out, trace;
};

std::unique_ptr<tandem::OutputFile> opened(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<tandem::OutputFile>(path);
}

ExitCode execute(const Options& options) {
  tandem::require_built(options.backend);
  const tandem::Dag dag = tandem::read_dag(options.dag);
  tandem::refuse_missing_ranks(dag, options.dag);
  tandem::refuse_too_many_ranks(static_cast<std::int64_t>(dag.ranks.size()), options.dag);
  tandem::refuse_too_many_bytes(dag, options.dag);
  const auto out = opened(options.out);
  const auto trace = opened(options.trace);

  tandem::HostMemory memory(dag, tandem::data_seed);
  const std::unique_ptr<tandem::Backend> backend = tandem::make_host_backend(memory);
  const auto began = std::chrono::steady_clock::now();
  const tandem::Timeline timeline = tandem::execute(dag, *backend);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;

  if (out) {
    out->write(tandem::to_bytes(timeline));
    out->commit();
  }
  if (trace) {
    tandem::write_trace({{"measured", &dag, &timeline}}, *trace);
    trace->commit();
  }
  std::cout << fmt::format("{}: {} tasks on {} ranks in {:.3f} s ({})\n", dag.info.scenario, dag.tasks.size(), dag.ranks.size(),
                           wall.count(), options.backend)
            << tandem::loss_sentence(memory);
  return ExitCode::done;
}

ExitCode run(int argc, char** argv) {
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  CLI::App app{"Executes a training step that `tandem lower` wrote"};
  app.name(program);
  app.set_version_flag("--version", std::string(program) + " " TANDEM_VERSION);
  Options options;
  app.add_option("dag", options.dag, "the file that `tandem lower --out` wrote")->required()->check(not_empty);
  tandem::add_backend_option(app, options.backend);
  app.add_option("--out", options.out, "write when each task ran, to be compared")->check(not_empty);
  app.add_option("--trace", options.trace, "write the timeline: .json for Chrome's format, anything else for Perfetto's")
      ->check(not_empty);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return tandem::complain(program, std::string(error.what()) + "; see tandem-run --help", ExitCode::wrong_input);
  }
  return tandem::guarded(program, [&] { return execute(options); });
}

}  // namespace

int main(int argc, char** argv) {
  tandem::start(program);
  return tandem::finished(program, run(argc, argv));
}
