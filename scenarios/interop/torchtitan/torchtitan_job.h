#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/interop/export_text.h"
#include "scenarios/interop/torchtitan/torchtitan_models.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A value of a configuration, as TOML and Python both write numbers and texts; truth values and lists differ.
struct TitanValue {
  enum class Kind : std::uint8_t {
    number,
    text,
    truth,
    modules  ///< a list of lists of texts
  };
  Kind kind = Kind::number;
  std::int64_t number = 0;  ///< truth: 0 or 1
  std::string text = {};
  std::vector<std::vector<std::string>> modules = {};
};

/// What `activation_checkpoint` is.
struct TitanCheckpointing {
  enum class Mode : std::uint8_t {
    none,
    full,
    every,     ///< each `every`-th layer
    operation  ///< by operation ("op")
  };
  Mode mode = Mode::none;
  std::int64_t every = 1;
};

/// A scenario in the terms that all versions of TorchTitan share, and what none of them has.
struct TitanJob {
  std::string description;
  std::optional<TorchTitanModel> model;
  std::int64_t sequence = 0, micro_batch = 1, global_batch = 1;
  std::int64_t replicas = 1;  ///< data-parallel
  bool fp32 = false, overlap_tp = false;
  DType precision = DType::bf16;
  Recipe recipe = Recipe::delayed;
  std::vector<std::pair<std::string, TitanValue>> parallelism;  ///< by the names of 0.2
  TitanCheckpointing checkpointing;
  std::vector<Lost> lost;
};

/// The list of modules by model part; `head`: what the last one of a decoder is called.
std::string modules_literal(const TitanValue& value, const std::string& head = "output");

TitanJob torchtitan_job(const Scenario& scenario);

}  // namespace tandem::scenarios
