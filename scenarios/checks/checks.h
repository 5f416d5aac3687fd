#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// Checks of the fields against each other. `document` is what `scenario` was read from, and gives every error its place.
// All throw InputError.

/// Fills in whichever of cluster.gpus and parallelism.dp was left out, and refuses meshes that do not fill the cluster: those
/// with a listed placement and a stated dp may leave some of it to others.
void complete_world(Scenario& scenario, const YamlNode& document);

/// Cluster by itself: whole nodes, NICs that fit the GPUs, PCIe ports and other GPUs where there are such.
void validate_cluster(const Scenario& scenario, const YamlNode& document);

/// Every rank on a GPU of its own.
void validate_placement(const Scenario& scenario, const YamlNode& document);

/// Switches that reach every NIC; links that can be slow or dead and leave a way between any two nodes.
void validate_fabric(const Scenario& scenario, const YamlNode& document);

/// Faults of ranks that exist.
void validate_faults(const Scenario& scenario, const YamlNode& document);

/// What tensor and sequence parallelism split must split evenly.
void validate_sharding(const Scenario& scenario, const YamlNode& document);

/// Experts over ranks, choices over experts.
void validate_experts(const Scenario& scenario, const YamlNode& document);

/// Layers over pipeline stages, schedule, batch.
void validate_pipeline(const Scenario& scenario, const YamlNode& document);

/// Two-level data parallelism, gradient compression, local SGD.
void validate_data_parallel(const Scenario& scenario, const YamlNode& document);

/// What the model and the GPU allow: positions, precision.
void validate_training(const Scenario& scenario, const YamlNode& document);

/// What is possible but unwise, each with its place and the reason.
std::vector<std::string> find_warnings(const Scenario& scenario, const YamlNode& document);

/// Throws for a conflict between the fields at `paths`. Points at their culprit.
[[noreturn]] void refuse(const YamlNode& document, std::initializer_list<std::string_view> paths, const std::string& sentence);

/// The place of the field that the user changed last: by an option, else in the scenario's own file, else in a preset; among
/// equals the first.
Place culprit(const YamlNode& document, std::initializer_list<std::string_view> paths);

}  // namespace tandem::scenarios
