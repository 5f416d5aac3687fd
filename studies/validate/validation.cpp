#include "studies/validate/validation.h"

#include <spdlog/fmt/fmt.h>

namespace tandem::studies {

Validation validation_of(std::span<const RunRow> rows, std::vector<ValidatedRow> validated) {
  Validation validation{.rows = std::move(validated), .strata = {}, .memory = {}, .ratios = {}, .cross_validation = {}};
  validation.strata = strata_of(validation.rows);
  validation.memory = memory_score_of(validation.rows);
  validation.ratios = ratios_of(rows, validation.rows);
  validation.cross_validation = cross_validate(validation.rows);
  return validation;
}

std::string note_of(const ValidatedRow& row) {
  return row.prediction ? fmt::format("{}", fmt::join(row.notes, "; ")) : "not simulated: " + row.reason;
}

}  // namespace tandem::studies
