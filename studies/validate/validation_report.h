#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/validate/cross_validation.h"
#include "studies/validate/memory_score.h"
#include "studies/validate/ratios.h"
#include "studies/validate/strata.h"

namespace tandem::studies {

/// Measured runs beside their predictions, and how far these are off.
struct Validation {
  std::vector<ValidatedRow> rows;
  std::vector<Stratum> strata;
  MemoryScore memory;
  std::vector<Ratio> ratios;
  std::vector<CrossValidation> cross_validation;
};

/// `validated`: of `rows`, in the same order.
Validation validation_of(std::span<const RunRow> rows, std::vector<ValidatedRow> validated);

/// What there is to know about how a row was predicted, or why it was not.
std::string note_of(const ValidatedRow& row);

nlohmann::ordered_json to_json_object(const Validation& validation);
std::string to_json(const Validation& validation);
/// The table of the same runs with columns for what was predicted beside its own; a column that has the name of one of those is
/// replaced.
std::string to_csv(const Validation& validation, const CsvTable& runs);

}  // namespace tandem::studies
