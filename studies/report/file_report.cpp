#include "studies/report/file_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "studies/report/step_report.h"
#include "studies/report/study_report.h"

namespace tandem::studies {

std::string file_page(const std::string& path, const std::string& command) {
  const std::string text = read_bytes(path);
  if (text.starts_with("SQLite format 3"))
    return study_page(std::filesystem::path(path).stem().string(), ResultsDatabase(path).rows(), command);
  const std::string expected = ", expected a database of `tandem sweep` or a result that --json wrote";
  const auto result = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!result.is_object()) throw InputError({path, 0, 0}, "is neither SQLite nor JSON" + expected);
  for (const char* key : {"scenario", "step_time_s", "time_s", "stages_s", "kinds", "memory", "bounds_s", "run"})
    if (!result.contains(key)) throw InputError({path, 0, 0}, "has no '" + std::string(key) + "'" + expected);
  return result_page(text, command);
}

}  // namespace tandem::studies
