#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

// The schedule.

const ScheduleTraits& schedule_of(const Scenario& s) { return traits_of(s.training.schedule); }

std::string text_of(ScheduleKind kind) { return std::string(name_of(kind)); }

std::string name_of_schedule(const Scenario& s) { return text_of(s.training.schedule); }

constexpr Rule schedule_has_stages{.sizes = Sizes::schedule,
                                   .holds = [](const Scenario& s) { return s.parallelism.pp >= schedule_of(s).least_stages; },
                                   .objection = [](const Scenario& s) -> Objection {
                                     return {{"training.schedule", "parallelism.pp"},
                                             name_of_schedule(s) + " with " + named(Axis::pp, s.parallelism.pp) + ", expected " +
                                                 named(Axis::pp, schedule_of(s).least_stages) + " or more, or schedule " +
                                                 text_of(ScheduleKind::one_f_one_b)};
                                   }};

constexpr Rule schedule_admits_chunks{
    .sizes = Sizes::schedule,
    .holds = [](const Scenario& s) { return schedule_of(s).admits_chunks(s.parallelism.vpp); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string_view expected = schedule_of(s).chunks_expected;
      const std::string chunks = named("vpp", s.parallelism.vpp);
      if (!expected.empty())
        return {{"training.schedule", "parallelism.vpp"},
                name_of_schedule(s) + " with " + chunks + ", expected " + std::string(expected)};
      return {{"parallelism.vpp", "training.schedule"},
              chunks + " without schedule " + text_of(ScheduleKind::interleaved) + ", expected that schedule or vpp 1"};
    }};

constexpr Rule schedule_divides_stages{.sizes = Sizes::schedule,
                                       .holds = [](const Scenario& s) { return schedule_of(s).admits_stages(s.parallelism.pp); },
                                       .objection = [](const Scenario& s) -> Objection {
                                         return {{"training.schedule", "parallelism.pp"},
                                                 name_of_schedule(s) + " with " + named(Axis::pp, s.parallelism.pp) +
                                                     ", expected " + std::string(schedule_of(s).stages_expected)};
                                       }};

// The layers.

bool is_uneven(const ParallelismSpec& p) { return p.first_stage_layers > 0 || p.last_stage_layers > 0; }

std::int64_t accounted(const ParallelismSpec& p) { return (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0); }

/// Which account_for_* options would make the layers divide over the chunks.
std::string accounting_advice(const Scenario& s) {
  const std::int64_t layers = s.model.layers, chunks = s.parallelism.pp * s.parallelism.vpp, given = accounted(s.parallelism);
  if (given < 1 && (layers + 1) % chunks == 0) return "; account_for_loss would make them fit";
  if (given < 2 && (layers + 2) % chunks == 0) return "; account_for_embedding and account_for_loss would make them fit";
  return "; nearest pp * vpp that they do: " + joined(nearest_divisors(layers + given, chunks));
}

constexpr Rule layers_divide{
    .sizes = Sizes::layers,
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return is_uneven(p) || !p.pipeline_layout.empty() || (s.model.layers + accounted(p)) % (p.pp * p.vpp) == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      return {{"parallelism.pp", "parallelism.vpp", "model.layers", "parallelism.account_for_embedding",
               "parallelism.account_for_loss"},
              std::to_string(s.model.layers) + " layers" + (p.account_for_embedding ? " + 1 for the embedding" : "") +
                  (p.account_for_loss ? " + 1 for the loss" : "") + " do not divide over " + named(Axis::pp, p.pp) + " * " +
                  named("vpp", p.vpp) + " = " + std::to_string(p.pp * p.vpp) + " model chunks" + accounting_advice(s)};
    }};

Objection wrong_split(const std::string& sentence) {
  return {{"parallelism.first_stage_layers", "parallelism.last_stage_layers", "parallelism.pp", "model.layers"}, sentence};
}

/// The layers that first_stage_layers and last_stage_layers leave must divide over the other stages.
std::optional<Objection> find_wrong_split(const Scenario& s) {
  const ParallelismSpec& p = s.parallelism;
  if (!is_uneven(p) || !p.pipeline_layout.empty()) return {};
  if (accounted(p) > 0)
    return wrong_split(
        "first_stage_layers and last_stage_layers exclude account_for_embedding and account_for_loss, expected one of the two");
  if (p.pp == 1) return wrong_split("first_stage_layers and last_stage_layers need " + named(Axis::pp, 2) + " or more");
  std::int64_t left = s.model.layers, stages = p.pp;
  for (const std::int64_t given : {p.first_stage_layers, p.last_stage_layers}) {
    if (given % p.vpp != 0)
      return wrong_split(std::to_string(given) + " layers of one stage do not divide over " + named("vpp", p.vpp) +
                         "; nearest that do: " + joined(nearest_multiples(p.vpp, given)));
    left -= given;
    if (given > 0) --stages;
  }
  const bool whole = stages == 0 ? left == 0 : left >= 0 && left % (stages * p.vpp) == 0;
  if (whole) return {};
  const std::string rest = std::to_string(s.model.layers) + " layers less " + named("first_stage_layers", p.first_stage_layers) +
                           " and " + named("last_stage_layers", p.last_stage_layers) + " leave " + std::to_string(left);
  if (stages == 0) return wrong_split(rest + ", but both stages are given, expected a sum of all layers");
  if (left < 0) return wrong_split(rest + ", expected fewer");
  return wrong_split(rest + ", which do not divide over the other " + std::to_string(stages) + " stages * " +
                     named("vpp", p.vpp));
}

// The batch.

std::string replicas_text(const ParallelismSpec& p) {
  return named(Axis::dp, p.dp) + (p.own_expert_axis ? " * " + named(Axis::ep, p.ep) : "");
}

/// Sequences that all replicas take together as one micro-batch.
std::int64_t sequences_at_once(const Scenario& s) { return s.parallelism.data_replicas() * s.training.micro_batch; }

Objection wrong_batch(const Scenario& s, const std::string& sentence, std::int64_t unit) {
  const std::int64_t batch = s.training.global_batch;
  return {{"training.global_batch", "training.micro_batch", "parallelism.dp", "cluster.gpus"},
          named("global_batch", batch) + sentence + "; nearest that are: " + joined(nearest_multiples(unit, batch))};
}

constexpr Rule micro_batches_are_whole{
    .sizes = Sizes::batch,
    .holds = [](const Scenario& s) { return s.training.global_batch % sequences_at_once(s) == 0; },
    .objection =
        [](const Scenario& s) {
          return wrong_batch(
              s, " is not a multiple of " + replicas_text(s.parallelism) + " * " + named("micro_batch", s.training.micro_batch),
              sequences_at_once(s));
        }};

std::int64_t micro_batches(const Scenario& s) { return s.training.micro_batches(s.parallelism); }

constexpr Rule rounds_are_whole{
    .sizes = Sizes::batch,
    .holds =
        [](const Scenario& s) { return !schedule_of(s).micro_batches_in_rounds || micro_batches(s) % s.parallelism.pp == 0; },
    .objection =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return wrong_batch(s,
                             " makes " + std::to_string(micro_batches(s)) + " micro-batches, not a multiple of pp, as " +
                                 name_of_schedule(s) + " needs: of " + replicas_text(p) + " * " +
                                 named("micro_batch", s.training.micro_batch) + " * " + named(Axis::pp, p.pp),
                             sequences_at_once(s) * p.pp);
        }};

/// In what a schedule takes at once, and enough of them to keep its stages busy.
constexpr Rule micro_batches_fill_schedule{
    .sizes = Sizes::batch,
    .holds = [](const Scenario& s) { return schedule_of(s).admits_micro_batches(micro_batches(s), s.parallelism.pp); },
    .objection = [](const Scenario& s) -> Objection {
      const ScheduleTraits& schedule = schedule_of(s);
      const std::int64_t unit = schedule.micro_batch_unit(s.parallelism.pp);
      return {{"training.global_batch", "training.micro_batch", "parallelism.dp", "parallelism.pp", "cluster.gpus"},
              named("global_batch", s.training.global_batch) + " makes " + std::to_string(micro_batches(s)) +
                  " micro-batches, expected " + (unit == 2 ? "an even number" : "a multiple of " + std::to_string(unit)) +
                  " of at least " + std::to_string(schedule.least_micro_batches_per_stage) + " * pp = " +
                  std::to_string(schedule.least_micro_batches(s.parallelism.pp)) + ", as " + name_of_schedule(s) + " needs"};
    }};

constexpr Rule split_is_whole = [] {
  Rule rule = rule_of<find_wrong_split>;
  rule.sizes = Sizes::layers;
  return rule;
}();

constexpr Rule encoders_take_single_sequences{
    .sizes = Sizes::batch,
    .holds = [](const Scenario& s) { return !s.model.encoder.enabled() || s.training.micro_batch == 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.micro_batch", "model.encoder"},
              named("micro_batch", s.training.micro_batch) +
                  " with model.encoder, whose images are lowered for one sequence at a time; expected micro_batch 1"};
    }};

constexpr Rule rules_of_pipeline[] = {schedule_has_stages,
                                      schedule_admits_chunks,
                                      schedule_divides_stages,
                                      layers_divide,
                                      split_is_whole,
                                      micro_batches_are_whole,
                                      rounds_are_whole,
                                      micro_batches_fill_schedule,
                                      encoders_take_single_sequences};

}  // namespace

std::span<const Rule> pipeline_rules() { return rules_of_pipeline; }

}  // namespace tandem::scenarios
