#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "runtime/base/exit_code.h"
#include "studies/trace/trace_output.h"
#include "traces/output_file.h"

namespace tandem::cli {

// Files are opened before the work begins, so that a wrong path does not cost a run.

/// The file that an option names; none where that is empty, or "-", which is standard output.
std::unique_ptr<OutputFile> open_file(const std::string& path);
/// The same for an HTML page. Throws std::runtime_error where this program was built without pages.
std::unique_ptr<OutputFile> open_page(const std::string& path);
/// Writes the whole file, where there is one.
void write_file(OutputFile* file, std::string_view text);
/// Writes `text` into the file at `path`, or to standard output where that is empty.
void write_to(const std::string& path, std::string_view text);

/// The files that a command which runs a step was asked for.
class Outputs {
 public:
  /// `world`: how many ranks the scenario has.
  Outputs(const StepOptions& options, std::int64_t world);

  /// `json`: the result. `steps`: those that a trace shows.
  void write(const std::string& json, const std::vector<TracedStep>& steps);
  /// The HTML page, where one was asked for: what `page` makes (see studies/report/).
  void write_report(const std::function<std::string()>& page);

 private:
  const StepOptions& options_;
  std::unique_ptr<OutputFile> json_;
  std::unique_ptr<TraceOutput> trace_;
  std::unique_ptr<OutputFile> report_;
};

/// Runs a step, and should that fail writes the page that says so before it passes the failure on. `command_line` is for the
/// page.
ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::string& command_line,
                           const std::function<ExitCode()>& run);

}  // namespace tandem::cli
