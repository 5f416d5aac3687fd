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

/// Where an option has a result written: to a file, to standard output ("-"), or nowhere. The file is opened when this is made,
/// which is before the work begins, so that a wrong path does not cost a run.
class Output {
 public:
  /// `path`: as the option has it; empty where nobody gave it. Throws std::runtime_error where the file cannot be opened.
  explicit Output(const std::string& path);

  /// Whether anybody wants the result.
  explicit operator bool() const { return file_.has_value() || is_standard_output_; }
  bool is_standard_output() const { return is_standard_output_; }
  /// Writes the result, which is `text`.
  void write(std::string_view text);
  /// Whether `write` was called, well or not.
  bool was_written() const { return was_written_; }

 private:
  std::optional<OutputFile> file_;
  bool is_standard_output_;
  bool was_written_ = false;
};

/// The stream to which text for a person goes, and the screen for which the text is laid out.
struct TextOutput {
  std::ostream& stream;
  Screen screen;
};

/// The files that a command which runs a step was asked for.
class Outputs {
 public:
  /// `world`: how many ranks the scenario has.
  Outputs(const StepOptions& options, std::int64_t world);

  /// Writes the result, which is `json`, and the trace of `steps`, each where it was asked for.
  void write(const std::string& json, const std::vector<TracedStep>& steps);
  /// Writes the HTML page that `page` makes (see studies/report/), where one was asked for.
  void write_report(const std::function<std::string()>& page);
  /// Writes the page in place of the report, unless that was tried already.
  void write_failure(const std::function<std::string()>& page);
  /// Returns standard output, or standard error where the JSON takes the former.
  TextOutput text() const;

 private:
  Output json_;
  std::unique_ptr<TraceOutput> trace_;
  Output report_;
};

/// Runs a step. If that fails before its page was written, writes the page that says so, which states `command_line`, and passes
/// the failure on; wrong input leaves no page.
ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::string& command_line,
                           const std::function<ExitCode()>& run);

}  // namespace tandem::cli
