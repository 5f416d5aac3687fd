#include <cmath>

#include "runtime/base/nearest.h"
#include "runtime/base/si.h"
#include "runtime/ops/operation_named.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

OpKind operation_at(const Place& place, const std::string& name) {
  if (const auto kind = operation_named(name)) return *kind;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < op_kind_count; ++i) names.emplace_back(operation(static_cast<OpKind>(i)).name);
  throw InputError(place, "there is no operation " + excerpt(name) + suggestion(name, names));
}

IssueCost read_issue(const Reader& framework) {
  const Reader issue(framework.child("issue_us"), framework.full_name("issue_us"),
                     {"forward", "backward", "communication", "loop"});
  return {.forward = issue.number("forward", microseconds, 0) * micro,
          .backward = issue.number("backward", microseconds, 0) * micro,
          .communication = issue.number("communication", microseconds, 0) * micro,
          .loop = issue.number("loop", microseconds, 0) * micro};
}

/// What stands beside the operations of one pass.
void read_extra(const Reader& framework, Pass pass, Software& software) {
  const std::string name(name_of(pass));
  for (const YamlNode::Entry& entry : framework.child(name).entries) {
    const OpKind kind = operation_at(entry.place, entry.key);
    if (is_communication(kind))
      throw InputError(entry.place, excerpt(entry.key) + " is communication, expected an operation that has kernels beside it");
    const Reader extra(entry.value, framework.full_name(name) + "." + entry.key, {"kernels", "bytes", "holds", "by_element"});
    const ExtraWork work{.kernels = extra.number("kernels", {0, 1000}, 0),
                         .bytes = extra.number("bytes", {0, 10'000}, 0),
                         .holds = extra.number("holds", {0, 10'000}, 0),
                         .by_element = extra.number("by_element", {0, 1000}, 0)};
    software.extra[static_cast<std::size_t>(pass)][static_cast<std::size_t>(kind)] = work;
  }
}

std::vector<OpKind> read_operations(const Reader& framework, const char* list) {
  std::vector<OpKind> kinds;
  for (const YamlNode& item : framework.child(list).items) kinds.push_back(operation_at(item.place, item.text));
  return kinds;
}

std::vector<Architecture> read_architectures(const Reader& framework, const char* list) {
  std::vector<Architecture> architectures;
  for (const YamlNode& item : framework.child(list).items)
    architectures.push_back(
        framework.choice_of<Architecture>(item, list,
                                          choices({Architecture::volta, Architecture::ampere, Architecture::hopper,
                                                   Architecture::blackwell, Architecture::unknown})));
  return architectures;
}

void read_workspaces(const Reader& framework, Software& software) {
  std::vector<std::string_view> architectures;
  for (std::size_t i = 0; i < architecture_count; ++i) architectures.emplace_back(name_of(static_cast<Architecture>(i)));
  const Reader sizes(framework.child("workspaces_MiB"), framework.full_name("workspaces_MiB"), architectures);
  constexpr double mebi = 1024.0 * 1024.0;
  for (std::size_t i = 0; i < architecture_count; ++i)
    software.workspaces[i] = std::llround(sizes.number(name_of(static_cast<Architecture>(i)), {0, 100'000}, 0) * mebi);
}

/// For the device's architecture; none where the framework does not say, or its speed is not known.
std::optional<AttentionKernel> usual_attention(const Reader& framework, const Device& device) {
  const Reader attention(framework.child("attention"), framework.full_name("attention"),
                         {"volta", "ampere", "hopper", "blackwell", "unknown"});
  const std::string architecture = name_of(device.architecture);
  if (!attention.has(architecture)) return {};
  const AttentionKernel kernel = read_attention_kernel(attention, architecture);
  return device.efficiency.states(kernel) ? std::optional(kernel) : std::nullopt;
}

Reader framework_reader(const YamlNode& node) {
  return {node,
          "training.framework",
          {"name",
           "attention",
           "issue_us",
           "forward",
           "backward",
           "weights",
           "optimizer",
           "sequence_copies",
           "waits_for",
           "gemm_sm_margin",
           "kernel_per_expert",
           "casts_once",
           "fuses_bias",
           "fp8_dispatch",
           "captured",
           "reserved_GB",
           "workspaces_MiB",
           "placeholder_gradients",
           "context_GB",
           "moves_weights",
           "expandable_segments",
           "tensor_lists",
           "attention_dropout",
           "fuses_experts",
           "gathers_casts",
           "norm_casts",
           "sums_after_weights",
           "reduces_amax",
           "rounds_router_gradients",
           "tf32"}};
}

}  // namespace

Software read_software(const YamlNode& node) {
  const Reader framework = framework_reader(node);
  Software software;
  software.name = framework.text("name", software.name);
  software.sequence_copies = framework.number("sequence_copies", {0, 100}, 0);
  software.issue = read_issue(framework);
  for (std::size_t pass = 0; pass < pass_count; ++pass) read_extra(framework, static_cast<Pass>(pass), software);
  software.waits_for = read_operations(framework, "waits_for");
  software.captured = read_operations(framework, "captured");
  software.gemm_sm_margin = static_cast<std::int32_t>(framework.integer("gemm_sm_margin", {0, 128}, 0));
  software.kernel_per_expert = read_operations(framework, "kernel_per_expert");
  software.casts_once = read_architectures(framework, "casts_once");
  software.fuses_experts = read_architectures(framework, "fuses_experts");
  software.gathers_casts = framework.boolean("gathers_casts", false);
  software.norm_casts = framework.boolean("norm_casts", false);
  software.reduces_amax = framework.boolean("reduces_amax", false);
  software.rounds_router_gradients = framework.boolean("rounds_router_gradients", false);
  software.sums_after_weights = framework.boolean("sums_after_weights", false);
  software.fuses_bias = framework.boolean("fuses_bias", false);
  software.fp8_dispatch = framework.boolean("fp8_dispatch", true);
  software.reserved = std::llround(framework.number("reserved_GB", {0, 1000}, 0) * 1e9);
  read_workspaces(framework, software);
  software.context = std::llround(framework.number("context_GB", {0, 1000}, 0) * 1e9);
  software.moves_weights = framework.boolean("moves_weights", false);
  software.expandable_segments = framework.boolean("expandable_segments", false);
  software.tensor_lists = framework.boolean("tensor_lists", false);
  software.placeholder_gradients = framework.boolean("placeholder_gradients", false);
  return software;
}

double read_attention_dropout(const YamlNode& node) {
  return framework_reader(node).number("attention_dropout", dropout_range, 0);
}

void choose_kernels(const YamlNode& node, Device& device) {
  const Reader framework = framework_reader(node);
  device.efficiency.tf32 = framework.boolean("tf32", false);
  if (const auto kernel = usual_attention(framework, device)) device.efficiency.attention_kernel = *kernel;
}

}  // namespace tandem::scenarios
