#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/terminal/screen.h"
#include "runtime/base/exit_code.h"
#include "studies/trace/trace_output.h"
#include "traces/output_file.h"

namespace tandem::cli {

/// What an option names for a result to be written to: a file, "-" for standard output, or nothing. The file is opened when this
/// is made, which is before the work begins, so that a wrong path does not cost a run.
class Output {
 public:
  /// `path`: as the option has it; empty where nobody gave it. Throws std::runtime_error where the file cannot be opened.
  explicit Output(const std::string& path);

  /// Whether anybody wants the result.
  explicit operator bool() const { return file_.has_value() || is_standard_output_; }
  bool is_standard_output() const { return is_standard_output_; }
  /// Writes the result, which is `text`.
  void write(std::string_view text);

 private:
  std::optional<OutputFile> file_;
  bool is_standard_output_;
};

/// Where text for a person goes, and the screen that it is laid out for.
struct TextOutput {
  std::ostream& stream;
  Screen screen;
};

/// The files that a command which runs a step was asked for.
class Outputs {
 public:
  /// `world`: how many ranks the scenario has.
  Outputs(const StepOptions& options, std::int64_t world);

  /// `json`: the result. `steps`: those that a trace shows.
  void write(const std::string& json, const std::vector<TracedStep>& steps);
  /// The HTML page, where one was asked for: what `page` makes (see studies/report/).
  void write_report(const std::function<std::string()>& page);
  /// Standard output, or standard error where the JSON takes that.
  TextOutput text() const;

 private:
  Output json_;
  std::unique_ptr<TraceOutput> trace_;
  Output report_;
};

/// Runs a step, and should that fail writes the page that says so before it passes the failure on. `command_line` is for the
/// page.
ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::string& command_line,
                           const std::function<ExitCode()>& run);

}  // namespace tandem::cli
