#pragma once

#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/namespaces.h"

namespace tandem {

/// A cell without its quotes, and where it begins.
struct CsvCell {
  std::string text;
  Place place;
};

struct CsvTable {
  std::vector<CsvCell> header;
  std::vector<std::vector<CsvCell>> rows;  ///< as many cells each as the header
};

/// Comma-separated values as RFC 4180 has them, whose first line names the columns. A byte order mark, any kind of line end and
/// lines without anything on them are taken as they come. Throws InputError at the place of a quote that never closes or closes
/// too early, and of a row that has more or fewer cells than there are columns. `file` stands for the text in messages.
///
/// Small and our own, since the readers that Debian has tell no column of what they read (libcsv), or want the columns to be
/// known when they are compiled (libfccp).
CsvTable parse_csv(const std::string& text, const std::string& file);

/// Returns `text` as a cell, in quotes where it needs them.
std::string csv_field(const std::string& text);

}  // namespace tandem
