#include <filesystem>

#include "runtime/base/text_file.h"
#include "scenarios/checks/check_campaign.h"
#include "scenarios/reading/culprit.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/load_campaign.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

constexpr double most_hours = 1e9;
constexpr Range<double> bandwidths{1e-6, 1e9}, times{0, 1e9}, hours{1e-3, most_hours};

/// A section of the document, made where it is missing.
YamlNode& section(YamlNode& document, const char* name) {
  if (YamlNode* found = document.find(name); found != nullptr && found->kind != YamlNode::Kind::null) {
    if (found->kind == YamlNode::Kind::mapping) return *found;
    throw InputError(found->place, std::string(name) + " is " + describe(*found) + ", expected a mapping");
  }
  document.erase(name);
  document.entries.push_back({name, name, document.place, make_node(YamlNode::Kind::mapping, document.place)});
  return document.entries.back().value;
}

/// A preset's mean times between failures are those of one cluster: all of them count, or none.
void move_failures(YamlNode& document) {
  YamlNode& campaign = section(document, "campaign");
  const YamlNode* of_preset = campaign.find("mtbf");
  if (of_preset == nullptr) return;
  const YamlNode mtbf = *of_preset;
  campaign.erase("mtbf");
  YamlNode& faults = section(document, "faults");
  if (faults.find("mtbf") == nullptr) faults.entries.push_back({"mtbf", "mtbf", mtbf.place, mtbf});
}

/// Before the preset fills in the rest, so that only what the user wrote is held against each other.
void refuse_contradictions(const YamlNode& document) {
  const auto both = [&](const std::string& a, const std::string& b, const std::string& expected) {
    if (find_path(document, a) != nullptr && find_path(document, b) != nullptr)
      refuse(document, {{a, b}, a + " and " + b + " contradict each other, expected " + expected});
  };
  if (const YamlNode* campaign = document.find("campaign"); campaign != nullptr && campaign->find("mtbf") != nullptr)
    throw InputError(place_of(document, "campaign.mtbf"),
                     "mean times between failures stand in faults.mtbf, not in campaign.mtbf");
  both("campaign.tokens", "campaign.days", "one of them: how much to train, or how long");
  both("campaign.checkpoint.interval_s", "campaign.checkpoint.interval_steps", "one of them, or neither for the best");
  both("campaign.checkpoint.bytes", "campaign.checkpoint.bytes_per_parameter", "one of them, or neither for what the step keeps");
}

/// `copy_is_stated`: by the user. A preset's speed of the copy counts only where the mode copies.
CheckpointSpec read_checkpoint(const YamlNode& node, bool copy_is_stated) {
  const Reader checkpoint(node, "campaign.checkpoint",
                          {"mode", "interval_s", "interval_steps", "bytes", "bytes_per_parameter", "write_GBps", "read_GBps",
                           "node_GBps", "copy_GBps"});
  CheckpointSpec spec;
  spec.asynchronous = checkpoint.choice<bool>("mode", {{"sync", false}, {"async", true}});
  if (checkpoint.has("interval_s")) spec.interval = checkpoint.number("interval_s", {1e-3, 1e9});
  if (checkpoint.has("interval_steps")) spec.interval_steps = checkpoint.integer("interval_steps", {1, 1'000'000'000});
  if (checkpoint.has("bytes")) spec.bytes = checkpoint.number("bytes", {1, 1e18});
  if (checkpoint.has("bytes_per_parameter")) spec.parameter_bytes = checkpoint.number("bytes_per_parameter", {0.01, 1e3});
  spec.write_GBps = checkpoint.number("write_GBps", bandwidths);
  spec.read_GBps = checkpoint.number("read_GBps", bandwidths);
  if (checkpoint.has("node_GBps")) spec.node_GBps = checkpoint.number("node_GBps", bandwidths);
  if (copy_is_stated || spec.asynchronous) spec.copy_GBps = checkpoint.number("copy_GBps", bandwidths);
  return spec;
}

SlowNodeSpec read_slow_node(const YamlNode& node) {
  const Reader slow(node, "campaign.slow_node", {"one_in", "factor", "found_hours"});
  SlowNodeSpec spec;
  if (slow.has("one_in")) spec.one_in = slow.number("one_in", {1, 1e9});
  if (slow.has("factor") || spec.one_in > 0) spec.factor = slow.number("factor", {1e-3, 0.999999});
  if (slow.has("found_hours")) spec.found_hours = slow.number("found_hours", hours);
  return spec;
}

CampaignSpec read_campaign(const YamlNode& document, bool copy_is_stated) {
  const Reader campaign(*document.find("campaign"), "campaign",
                        {"name", "tokens", "days", "checkpoint", "detection_s", "restart_s", "planned_hours", "spare_nodes",
                         "repair_hours", "slow_node", "replicas", "seed"});
  CampaignSpec spec;
  spec.preset = campaign.text("name");
  if (campaign.has("tokens")) spec.tokens = campaign.number("tokens", {1, 1e18});
  if (campaign.has("days")) spec.days = campaign.number("days", {1e-3, 36'500});
  if (!spec.tokens && !spec.days)
    campaign.fail("tokens", "campaign.tokens is missing, expected how many tokens to train, or campaign.days");
  const YamlNode* faults = document.find("faults");
  const YamlNode nothing;
  spec.mtbf = read_mtbf(faults == nullptr ? nothing : *faults);
  spec.checkpoint = read_checkpoint(campaign.child("checkpoint"), copy_is_stated);
  spec.detection = campaign.number("detection_s", times);
  spec.restart = campaign.number("restart_s", times);
  if (campaign.has("planned_hours")) spec.planned_hours = campaign.number("planned_hours", hours);
  spec.spare_nodes = campaign.integer("spare_nodes", {0, max_gpus});
  spec.repair_hours = campaign.number("repair_hours", {0, most_hours});
  spec.slow_node = read_slow_node(campaign.child("slow_node"));
  constexpr std::int64_t replicas = 1000;
  spec.replicas = campaign.integer("replicas", {1, 1'000'000}, replicas);
  spec.seed = static_cast<std::uint64_t>(campaign.integer("seed", {0, std::int64_t{1} << 53}, 1));
  return spec;
}

}  // namespace

Campaign parse_campaign(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  YamlNode document = parse_yaml(text, name);
  tidy_names(document);
  for (const std::string& option : overrides) apply_override(document, option);
  refuse_contradictions(document);
  const bool copy_is_stated = find_path(document, "campaign.checkpoint.copy_GBps") != nullptr;
  const std::filesystem::path file(name);
  resolve_presets(document, file.parent_path().string());
  section(document, "campaign");
  resolve_campaign_preset(document, file.parent_path().string());
  move_failures(document);
  Scenario scenario = read_document(document, file.stem().string());
  CampaignSpec spec = read_campaign(document, copy_is_stated);
  if (const auto objection = first_objection(spec)) refuse(document, *objection);
  return {std::move(scenario), std::move(spec), std::move(document)};
}

Campaign load_campaign(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_campaign(read_text_file(path, a_scenario), path, overrides);
}

}  // namespace tandem::scenarios
