#include "tests/studies/place_job.h"

#include <fstream>

namespace tandem::studies {

PlaceFolder::PlaceFolder(const std::string& text) { write("placed.yaml", text); }

void PlaceFolder::write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

}  // namespace tandem::studies
