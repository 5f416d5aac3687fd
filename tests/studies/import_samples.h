#pragma once

#include <filesystem>
#include <string>

#include "studies/interop/import_source.h"

/// A file of each kind that `tandem import` takes: samples/SOURCE.*
namespace tandem::studies {

/// Empty where there is none.
inline std::filesystem::path sample_of(const ImportSource& source) {
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/tests/studies/samples")) {
    const std::string name = entry.path().filename();
    if (name.substr(0, name.find('.')) == source.name) return entry.path();
  }
  return {};
}

/// With what the samples do not say.
inline ImportRequest sample_request(const ImportSource& source, const std::string& path) {
  ImportRequest request{.paths = {path}};
  if (source.name == "chakra") request.gpus = 2;
  if (source.has_use_for(ImportOption::env)) request.gpus = 32;  // scenarios
  if (source.name == "deepspeed") request.overrides = {"model=llama3-8b", "training.sequence=4096"};
  return request;
}

}  // namespace tandem::studies
