#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "runtime/base/input_error.h"
#include "studies/report/step_report.h"
#include "studies/report/study_report.h"
#include "traces/output_file.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw InputError({path, 0, 0}, "cannot be read");
  return text;
}

std::string page_on(const std::string& path) {
  const std::string text = contents_of(path);
  if (text.starts_with("SQLite format 3"))
    return study_page(std::filesystem::path(path).stem().string(), ResultsDatabase(path).rows());
  const std::string expected = ", expected a database of `tandem sweep` or a result that --json wrote";
  const Json result = Json::parse(text, nullptr, false);
  if (!result.is_object()) throw InputError({path, 0, 0}, "is neither SQLite nor JSON" + expected);
  for (const char* key : {"scenario", "step_time_s", "time_s", "stages_s", "kinds", "memory", "bounds_s", "run"})
    if (!result.contains(key)) throw InputError({path, 0, 0}, "has no '" + std::string(key) + "'" + expected);
  return result_page(text);
}

}  // namespace

CLI::App* ReportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "show a study's database, or a result, as one HTML file");
  command->add_option("file", file, "what `tandem sweep` or --json wrote")->required()->check(CLI::ExistingFile);
  command->add_option("--out", out, "the page (default: the file's name with .html, in this folder)");
  return command;
}

ExitCode ReportCommand::run() const {
  OutputFile page(out.empty() ? std::filesystem::path(file).stem().string() + ".html" : out);
  page.write(page_on(file));
  page.commit();
  return ExitCode::done;
}

}  // namespace tandem::cli
