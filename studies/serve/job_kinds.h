#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tandem::studies {

/// What every job may use.
struct JobSite {
  std::filesystem::path folder;  ///< of the scenarios, which is the only one that is read
  std::size_t processes = 1;     ///< simulations that a job may run at once
};

using TellProgress = std::function<void(const nlohmann::ordered_json&)>;

/// A thing that a page can ask for.
struct JobKind {
  std::string_view name;
  bool is_long = false;  ///< a search: it may take an hour, and few run at once
  int niceness = 0;      ///< see setpriority(2): what moves with a slider goes before what is drawn when it rests
  /// Does the work in the process that it is called in. Throws InputError for what is wrong with `body`.
  nlohmann::ordered_json (*work)(const nlohmann::ordered_json& body, const JobSite& site, const TellProgress& tell);
};

/// The table of them:
///
///     form      {name, text, changes}   what each field may be, refusals, warnings (form.h)
///     step      {name, text, changes}   the result of the step, as `tandem simulate --json` writes it
///     schedule  {name, text, changes}   the data of the report's page (viz/src/report.ts), without `blame`
///     report    {name, text, changes}   {page}: the report itself
///     lint      {name, text, changes}   as `tandem lint --json` writes it
///     scenario  {name, text, changes}   {text}: the scenario with the changes
///     search    {name, text, changes}   as `tandem search --json` writes it; on the way {doing, done, of, best}
///     diff      {a, b}                  two results: what changed (`DiffReport`)
///     study     {points: [{name, text, changes}]}   {text}: a file for `tandem sweep`
std::span<const JobKind> job_kinds();

/// The kind's place in the table; its size where there is none of that name.
std::size_t job_kind_named(std::string_view name);

}  // namespace tandem::studies
