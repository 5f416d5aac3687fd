#include <algorithm>
#include <string>

#include "scenarios/checks/rules.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

namespace part = layout_part;

constexpr const char* field = "parallelism.pipeline_layout";

const PipelineLayout& layout_of(const Scenario& s) { return s.parallelism.pipeline_layout; }

bool is_given(const Scenario& s) { return !layout_of(s).empty(); }

/// The stage that holds the MTP layers, counted from 0; the number of stages where there are none.
std::size_t mtp_stage(const PipelineLayout& layout) {
  const auto has_mtp = [](const std::string& stage) { return count_in(stage, part::mtp) > 0; };
  return static_cast<std::size_t>(std::ranges::find_if(layout, has_mtp) - layout.begin());
}

constexpr Rule layout_stands_alone{
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return !is_given(s) ||
                 (!p.account_for_embedding && !p.account_for_loss && p.first_stage_layers == 0 && p.last_stage_layers == 0);
        },
    .objection = [](const Scenario&) -> Objection {
      return {
          {field, "parallelism.account_for_embedding", "parallelism.account_for_loss", "parallelism.first_stage_layers",
           "parallelism.last_stage_layers"},
          "pipeline_layout excludes account_for_embedding, account_for_loss, first_stage_layers and last_stage_layers, expected "
          "it without them"};
    }};

constexpr Rule layout_has_stages{.sizes = Sizes::layers,
                                 .holds =
                                     [](const Scenario& s) {
                                       const auto stages = static_cast<std::int64_t>(layout_of(s).size());
                                       return !is_given(s) || stages == s.parallelism.pp * s.parallelism.vpp;
                                     },
                                 .objection = [](const Scenario& s) -> Objection {
                                   const ParallelismSpec& p = s.parallelism;
                                   return {{field, "parallelism.pp", "parallelism.vpp"},
                                           "pipeline_layout has " + std::to_string(layout_of(s).size()) +
                                               " virtual stages, expected " + named(Axis::pp, p.pp) + " * " +
                                               named("vpp", p.vpp) + " = " + std::to_string(p.pp * p.vpp)};
                                 }};

/// One embedding, which the model begins with, and one loss, which it ends with.
std::optional<Objection> find_wrong_end(const Scenario& s) {
  if (!is_given(s)) return {};
  const PipelineLayout& layout = layout_of(s);
  const auto wrong = [&](char letter, const std::string& place) -> Objection {
    const std::int64_t count = count_in(layout, letter);
    const std::string found = count == 0 ? "no " : count == 1 ? "a misplaced " : std::to_string(count) + " ";
    return {{field}, "pipeline_layout has " + found + letter + ", expected one " + letter + ", " + place};
  };
  if (count_in(layout, part::embedding) != 1 || !layout.front().starts_with(part::embedding))
    return wrong(part::embedding, "the embedding, at the beginning of the first stage");
  if (count_in(layout, part::loss) != 1 || !layout.back().ends_with(part::loss))
    return wrong(part::loss, "the loss, at the end of the last stage");
  return {};
}

std::optional<Objection> find_wrong_count(const Scenario& s) {
  if (!is_given(s)) return {};
  const std::int64_t layers = count_in(layout_of(s), part::layer), mtp = count_in(layout_of(s), part::mtp);
  if (layers != s.model.layers)
    return Objection{
        {field, "model.layers"},
        "pipeline_layout has " + std::to_string(layers) + " layers t, expected the model's " + std::to_string(s.model.layers)};
  if (mtp != s.model.mtp_depth)
    return Objection{{field, "model.mtp_depth"},
                     "pipeline_layout has " + std::to_string(mtp) + " MTP layers m, expected the model's " +
                         named("mtp_depth", s.model.mtp_depth)};
  return {};
}

/// What Megatron-Core demands of MTP layers (validate_layer_layout): after the others, in one virtual stage.
std::optional<Objection> find_scattered_mtp(const Scenario& s) {
  if (!is_given(s) || s.model.mtp_depth == 0) return {};
  const PipelineLayout& layout = layout_of(s);
  const std::size_t stage = mtp_stage(layout);
  if (count_in(layout[stage], part::mtp) != s.model.mtp_depth)
    return Objection{{field}, "pipeline_layout has MTP layers m in several stages, expected all in one"};
  std::string from_there = layout[stage].substr(layout[stage].find(part::mtp));
  for (std::size_t later = stage + 1; later < layout.size(); ++later) from_there += layout[later];
  if (count_in(from_there, part::layer) > 0)
    return Objection{{field}, "pipeline_layout has a layer t after an MTP layer m, expected m after every t"};
  return {};
}

/// The last chunk of a pipeline stage, and not of the first, which embeds.
constexpr Rule mtp_is_in_last_chunk{
    .sizes = Sizes::layers,
    .holds =
        [](const Scenario& s) {
          if (!mtp_is_apart(s)) return true;
          const auto stage = static_cast<std::int64_t>(mtp_stage(layout_of(s)));
          return stage > s.parallelism.pp * (s.parallelism.vpp - 1);
        },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      return {{field, "parallelism.pp", "parallelism.vpp"},
              "pipeline_layout has MTP layers m in virtual stage " + std::to_string(mtp_stage(layout_of(s)) + 1) + " of " +
                  std::to_string(layout_of(s).size()) + ", expected one of the last " + std::to_string(p.pp - 1) +
                  ": the last chunk of any pipeline stage but the first"};
    }};

constexpr Rule mtp_apart_has_schedule{
    .sizes = Sizes::schedule,
    .holds = [](const Scenario& s) { return !mtp_is_apart(s) || traits_of(s.training.schedule).path == ChunkPath::loop; },
    .objection = [](const Scenario& s) -> Objection {
      return {{field, "training.schedule"},
              "pipeline_layout has MTP layers m in another stage than the loss L, which " +
                  std::string(name_of(s.training.schedule)) + " does not pass on, expected them in one stage or schedule " +
                  std::string(name_of(ScheduleKind::one_f_one_b)) + " or " + std::string(name_of(ScheduleKind::interleaved))};
    }};

constexpr Rule rules_of_layout[] = {layout_stands_alone,       layout_has_stages,           rule_of<find_wrong_end>,
                                    rule_of<find_wrong_count>, rule_of<find_scattered_mtp>, mtp_is_in_last_chunk,
                                    mtp_apart_has_schedule};

}  // namespace

std::span<const Rule> layout_rules() { return rules_of_layout; }

}  // namespace tandem::scenarios
