#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/validate/cross_validation.h"
#include "studies/validate/memory_score.h"
#include "studies/validate/ratios.h"
#include "studies/validate/strata.h"

namespace tandem::studies {

/// Measured runs beside their predictions, with the scores of these.
struct Validation {
  std::vector<ValidatedRow> rows;
  std::vector<Stratum> strata;
  MemoryScore memory;
  std::vector<Ratio> ratios;
  std::vector<CrossValidation> cross_validation;
};

/// Scores the rows. `validated` belongs to `rows`, in the same order.
Validation validation_of(std::span<const RunRow> rows, std::vector<ValidatedRow> validated);

/// Returns how a row was predicted, or why it was not.
std::string note_of(const ValidatedRow& row);

/// Returns the object `rows[]` of that form.
nlohmann::ordered_json to_json_object(const ValidatedRow& row);
nlohmann::ordered_json to_json_object(const Validation& validation);
std::string to_json(const Validation& validation);
/// Returns the table `runs` with columns for the predictions added; a column of the table that has the name of an added one is
/// replaced.
std::string to_csv(const Validation& validation, const CsvTable& runs);

}  // namespace tandem::studies
