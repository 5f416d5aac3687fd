#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scenarios/checks/checks.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {

// The rules by subject, a file each, in the order in which they are asked. A rule may count on those before it of its subject.
// A new rule is a row there.

/// Heads and latent attention, which no parallelism comes into.
std::span<const Rule> model_rules();
/// What tensor, sequence and context parallelism split must split evenly.
std::span<const Rule> sharding_rules();
/// Meshes that fill the cluster; those with a listed placement and a stated dp may leave some of it to others. A size of 0 is one
/// that was left out.
std::span<const Rule> world_rules();
/// The cluster by itself: whole nodes, NICs that fit the GPUs, PCIe ports and other GPUs where there are such.
std::span<const Rule> cluster_rules();
/// Every rank on a GPU of its own.
std::span<const Rule> placement_rules();
/// Switches that reach every NIC; links that can be slow or dead and leave a way between any two nodes.
std::span<const Rule> fabric_rules();
/// Faults of ranks that exist.
std::span<const Rule> fault_rules();
/// What a written pipeline layout must hold.
std::span<const Rule> layout_rules();
/// Layers over pipeline stages, schedule, batch.
std::span<const Rule> pipeline_rules();
/// Two-level data parallelism, gathered weights, gradient compression, local SGD.
std::span<const Rule> data_parallel_rules();
/// Experts over ranks, choices over experts.
std::span<const Rule> expert_rules();
/// What the model and the GPU allow: attention kernel, positions, precision.
std::span<const Rule> training_rules();

/// A rule of any fields, which finds what breaks it together with the words.
template <std::optional<Objection> (*find)(const Scenario&)>
inline constexpr Rule rule_of{.holds = [](const Scenario& scenario) { return !find(scenario); },
                              .objection = [](const Scenario& scenario) { return *find(scenario); }};

}  // namespace tandem::scenarios
