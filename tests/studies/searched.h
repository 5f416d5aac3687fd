#pragma once

#include <cstddef>
#include <fstream>
#include <string>

#include "studies/search/plan_space.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies {

struct Searched {
  TemporaryFolder folder;
  SearchSpec spec;

  explicit Searched(const std::string& text) {
    const std::string path = folder / "searched.yaml";
    std::ofstream(path) << text;
    spec = load_search(path, {});
  }
};

/// Of plans drawn at random from a space: no simulation takes less time or memory than the bounds say. Prints how much more.
/// `least_median`, `least_memory`: what the medians of bound / simulated are above.
void expect_bounds_hold(const std::string& text, std::size_t draws, unsigned seed, double least_median = 0.9,
                        double least_memory = 0.9);

}  // namespace tandem::studies
