#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// `faults.mtbf`: hours between two failures of one of its kind, on average; 0: it never fails.
struct MtbfSpec {
  double gpu_hours = 0;
  double node_hours = 0;      ///< of a node but for its GPUs and NICs
  double link_hours = 0;      ///< of a NIC with its cable and its share of the switches
  double software_hours = 0;  ///< of the software on one node

  bool any() const { return gpu_hours > 0 || node_hours > 0 || link_hours > 0 || software_hours > 0; }
};

/// `campaign.checkpoint`.
struct CheckpointSpec {
  bool asynchronous = false;
  Seconds interval = 0;                   ///< of training between two; 0: the best
  std::int64_t interval_steps = 0;        ///< the same in steps; 0: by `interval`
  std::optional<double> bytes;            ///< of a checkpoint
  std::optional<double> parameter_bytes;  ///< for each parameter; where neither is given what the step keeps in memory decides
  double write_GBps = 0;                  ///< of the whole job, to storage
  double read_GBps = 0;
  double node_GBps = 0;  ///< of one node, either way; 0: no limit
  double copy_GBps = 0;  ///< of one GPU, to the memory of its host
};

/// `campaign.slow_node`: one node in `one_in` is slow: the kernels of its GPUs take 1 / factor times as long.
struct SlowNodeSpec {
  double one_in = 0;  ///< 0: none is slow
  double factor = 1;
  double found_hours = 0;  ///< training with a slow node until it is found and replaced; 0: it never is
};

/// The section `campaign`: weeks of training, as an operator would describe them.
struct CampaignSpec {
  std::string preset;
  std::optional<double> tokens, days;  ///< one of them: how much to train, or how long
  MtbfSpec mtbf;
  CheckpointSpec checkpoint;
  Seconds detection = 0;     ///< from a failure until the job is stopped and what failed is found
  Seconds restart = 0;       ///< until it trains again, without loading the checkpoint
  double planned_hours = 0;  ///< between two planned stops; 0: there are none
  std::int64_t spare_nodes = 0;
  double repair_hours = 0;  ///< until a node that was taken out can be had again
  SlowNodeSpec slow_node;
  std::int64_t replicas = 0;
  std::uint64_t seed = 0;
};

/// A scenario and the weeks of it. `document` gives later errors their places (`refuse` in culprit.h).
struct Campaign {
  Scenario scenario;
  CampaignSpec spec;
  YamlNode document;
};

/// Like `load_scenario`, with the section `campaign`, whose preset (scenarios/presets/campaigns; llama3-2024 where none is named)
/// fills in what is not stated. The preset's mean times between failures count only where `faults.mtbf` states none: they are of
/// one cluster. Throws InputError, also for settings that contradict each other, by the names of both.
Campaign load_campaign(const std::string& path, const std::vector<std::string>& overrides);

/// Reads a campaign from text; `name` stands for the file in messages.
Campaign parse_campaign(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

}  // namespace tandem::scenarios
