#include "cli/outputs.h"

#include <iostream>

#include "cli/program.h"
#include "runtime/base/input_error.h"
#include "studies/report/page.h"
#include "studies/report/step_report.h"

namespace tandem::cli {

std::unique_ptr<OutputFile> open_file(const std::string& path) {
  return path.empty() || path == "-" ? nullptr : std::make_unique<OutputFile>(path);
}

std::unique_ptr<OutputFile> open_page(const std::string& path) {
  if (path.empty()) return nullptr;
  require_report_page();
  return std::make_unique<OutputFile>(path);
}

void write_file(OutputFile* file, std::string_view text) {
  if (file == nullptr) return;
  file->write(text);
  file->commit();
}

void write_to(const std::string& path, std::string_view text) {
  if (path.empty()) {
    std::cout << text;
    return;
  }
  OutputFile file(path);
  write_file(&file, text);
}

Outputs::Outputs(const StepOptions& options, std::int64_t world) : options_(options), json_(open_file(options.json)) {
  if (!options.trace.empty()) trace_ = std::make_unique<TraceOutput>(options.trace, options.trace_ranks, world);
  report_ = open_page(options.report);
}

void Outputs::write(const std::string& json, const std::vector<TracedStep>& steps) {
  if (trace_) warn_of_other_traces("tandem", trace_->write(steps));
  write_file(json_.get(), json);
  if (options_.json == "-") std::cout << json;
}

void Outputs::write_report(const std::function<std::string()>& page) {
  if (report_) write_file(report_.get(), page());
}

ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::string& command_line,
                           const std::function<ExitCode()>& run) {
  try {
    return run();
  } catch (const InputError&) {
    throw;  // wrong input leaves nothing behind
  } catch (const std::exception& error) {
    outputs.write_report([&] { return failure_page(scenario, error.what(), command_line); });
    throw;
  }
}

}  // namespace tandem::cli
