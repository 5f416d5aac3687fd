#include "cli/outputs.h"

#include <unistd.h>

#include <iostream>

#include "cli/program.h"
#include "runtime/base/input_error.h"
#include "studies/report/step_report.h"

namespace tandem::cli {

Output::Output(const std::string& path) : is_standard_output_(path == "-") {
  if (!path.empty() && !is_standard_output_) file_.emplace(path);
}

void Output::write(std::string_view text) {
  was_written_ = true;
  if (is_standard_output_) std::cout << text;
  if (!file_) return;
  file_->write(text);
  file_->commit();
}

Outputs::Outputs(const StepOptions& options, std::int64_t world) : json_(options.json), report_(options.report) {
  if (!options.trace.empty()) trace_ = std::make_unique<TraceOutput>(options.trace, options.trace_ranks, world);
}

void Outputs::write(const std::string& json, const std::vector<TracedStep>& steps) {
  if (trace_) warn_of_other_traces("tandem", trace_->write(steps));
  json_.write(json);
}

void Outputs::write_report(const std::function<std::string()>& page) {
  if (report_) report_.write(page());
}

void Outputs::write_failure(const std::function<std::string()>& page) {
  if (!report_.was_written()) write_report(page);
}

TextOutput Outputs::text() const {
  if (json_.is_standard_output()) return {std::cerr, screen_on(STDERR_FILENO)};
  return {std::cout, screen_on(STDOUT_FILENO)};
}

ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::string& command_line,
                           const std::function<ExitCode()>& run) {
  try {
    return run();
  } catch (const InputError&) {
    throw;  // wrong input leaves nothing behind
  } catch (const std::exception& error) {
    outputs.write_failure([&] { return failure_page(scenario, error.what(), command_line); });
    throw;
  }
}

}  // namespace tandem::cli
