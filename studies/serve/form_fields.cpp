#include "studies/serve/form_fields.h"

#include <algorithm>
#include <array>
#include <set>

#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/limits.h"
#include "scenarios/spec/names.h"

namespace tandem::studies {
namespace {

using Values = std::vector<std::string>;
using scenarios::max_gpus;

Values texts_of(const std::set<std::int64_t>& numbers) {
  Values texts;
  for (const std::int64_t number : numbers) texts.push_back(std::to_string(number));
  return texts;
}

/// Powers of two, and what else divides `whole`, up to `most`.
Values sizes(std::int64_t whole, std::int64_t most) {
  std::set<std::int64_t> numbers;
  for (std::int64_t size = 1; size <= most; size *= 2) numbers.insert(size);
  for (std::int64_t size = 1; size <= std::min(whole, most); ++size)
    if (whole % size == 0) numbers.insert(size);
  return texts_of(numbers);
}

/// `value`, halved and doubled as far as both ends allow, and the powers of two between them.
Values doublings(std::int64_t value, std::int64_t least, std::int64_t most) {
  std::set<std::int64_t> numbers;
  for (std::int64_t size = 1; size <= most; size *= 2)
    if (size >= least) numbers.insert(size);
  for (std::int64_t size = value; size >= least && size > 0; size /= 2) {
    numbers.insert(size);
    if (size % 2 != 0) break;
  }
  for (std::int64_t size = std::max<std::int64_t>(value, 1); size <= most; size *= 2) numbers.insert(size);
  return texts_of(numbers);
}

template <std::int64_t ParallelismSpec::*size>
std::string size_of_axis(const Scenario& s) {
  return std::to_string(s.parallelism.*size);
}

template <std::int64_t TrainingSpec::*number>
std::string number_of_training(const Scenario& s) {
  return std::to_string(s.training.*number);
}

std::string yes_or_no(bool value) { return value ? "true" : "false"; }
Values both(const Scenario& /*unused*/) { return {"false", "true"}; }

template <bool TrainingSpec::*overlaps>
std::string overlap(const Scenario& s) {
  return yes_or_no(s.training.*overlaps);
}

template <typename Table>
Values names_of_table(const Table& table) {
  Values names;
  for (const auto& named : table) names.emplace_back(named.name);
  return names;
}

constexpr std::int64_t most_tp = 64, most_cp = 64, most_micro_batch = 64, most_sequence = 1 << 20, least_sequence = 512;

Values tp_values(const Scenario& s) { return sizes(s.model.heads, most_tp); }
Values pp_values(const Scenario& s) { return sizes(s.model.layers, std::min<std::int64_t>(s.model.layers + 2, s.cluster.gpus)); }
Values vpp_values(const Scenario& s) {
  return sizes(s.model.layers + 2, std::max<std::int64_t>(1, (s.model.layers + 2) / std::max<std::int64_t>(1, s.parallelism.pp)));
}
Values cp_values(const Scenario& s) { return sizes(1, std::min(most_cp, s.cluster.gpus)); }
Values ep_values(const Scenario& s) { return sizes(s.model.moe.experts, std::max<std::int64_t>(1, s.model.moe.experts)); }
Values etp_values(const Scenario& s) { return s.model.moe.experts > 0 ? sizes(1, 8) : Values{"1"}; }
Values zero_values(const Scenario& /*unused*/) { return {"0", "1", "2", "3"}; }
Values gpu_counts(const Scenario& s) { return doublings(s.cluster.gpus, 1, max_gpus / 8); }
Values sequences(const Scenario& s) { return doublings(s.training.sequence, least_sequence, most_sequence); }
Values micro_batches(const Scenario& s) { return sizes(1, std::min(most_micro_batch, s.training.global_batch)); }
Values global_batches(const Scenario& s) { return doublings(s.training.global_batch, 1, 1 << 17); }

Values schedule_values(const Scenario& /*unused*/) {
  Values names;
  for (const scenarios::ScheduleTraits& traits : scenarios::schedule_table()) names.emplace_back(traits.name);
  return names;
}

std::string recompute_value(const Scenario& s) {
  const auto same = [&](const auto& named) { return named.value == s.training.recompute; };
  const auto* const found = std::ranges::find_if(scenarios::recompute_names, same);
  return found == scenarios::recompute_names.end() ? "" : std::string(found->name);  // empty: a list of modules
}

std::string setting_chunks(std::int64_t vpp) { return "parallelism.vpp=" + std::to_string(vpp); }
std::string setting_schedule(std::string_view name) { return "training.schedule=" + std::string(name); }

/// Those of so many model chunks; last the ones that need memory for a whole batch.
Values schedules_with(std::int64_t vpp) {
  Values frugal, greedy;
  for (const scenarios::ScheduleTraits& traits : scenarios::schedule_table())
    if (traits.admits_chunks(vpp)) (traits.holds_whole_batch ? greedy : frugal).push_back(setting_schedule(traits.name));
  frugal.insert(frugal.end(), greedy.begin(), greedy.end());
  return frugal;
}

/// For pp: fewer model chunks, then any schedule of one or two.
std::vector<Values> chunks_and_schedules(const Scenario& s, const std::string& /*unused*/) {
  std::vector<Values> all;
  for (std::int64_t vpp = s.parallelism.vpp / 2; vpp > 0; vpp /= 2) all.push_back({setting_chunks(vpp)});
  for (const std::int64_t vpp : {1, 2})
    for (const std::string& schedule : schedules_with(vpp)) all.push_back({setting_chunks(vpp), schedule});
  return all;
}

/// For a schedule: the least and the most model chunks that it has, and two stages where it needs a pipeline.
std::vector<Values> chunks_of_schedule(const Scenario& /*unused*/, const std::string& schedule) {
  const scenarios::ScheduleTraits* traits = scenarios::schedule_named(schedule);
  if (traits == nullptr) return {};
  const std::string chunks = setting_chunks(traits->least_chunks);
  return {{chunks}, {"parallelism.pp=2"}, {"parallelism.pp=2", chunks}};
}

/// For vpp: a schedule of so many model chunks.
std::vector<Values> schedules_of_chunks(const Scenario& /*unused*/, const std::string& vpp) {
  std::vector<Values> all;
  for (const std::string& schedule : schedules_with(std::stoll(vpp))) all.push_back({schedule});
  return all;
}

/// A batch that grows and shrinks with the GPUs.
std::vector<Values> batch_per_gpu(const Scenario& s, const std::string& gpus) {
  const std::int64_t now = std::max<std::int64_t>(1, s.cluster.gpus), then = std::stoll(gpus);
  std::vector<Values> all = {{"parallelism.dp="}};
  if (s.training.global_batch * then % now != 0) return all;
  const std::string batch = "training.global_batch=" + std::to_string(s.training.global_batch * then / now);
  all.push_back({batch});
  all.push_back({"parallelism.dp=", batch});
  return all;
}

std::vector<Values> without_sequence_parallelism(const Scenario& s, const std::string& /*unused*/) {
  if (!s.parallelism.sp) return {};
  return {{"parallelism.sp=false"}};
}

constexpr std::array rows{
    FieldRow{"cluster.gpus", [](const Scenario& s) { return std::to_string(s.cluster.gpus); }, gpu_counts, batch_per_gpu},
    FieldRow{"parallelism.tp", size_of_axis<&ParallelismSpec::tp>, tp_values, without_sequence_parallelism},
    FieldRow{"parallelism.sp", [](const Scenario& s) { return yes_or_no(s.parallelism.sp); }, both},
    FieldRow{"parallelism.pp", size_of_axis<&ParallelismSpec::pp>, pp_values, chunks_and_schedules},
    FieldRow{"parallelism.vpp", size_of_axis<&ParallelismSpec::vpp>, vpp_values, schedules_of_chunks},
    FieldRow{"parallelism.cp", size_of_axis<&ParallelismSpec::cp>, cp_values},
    FieldRow{"parallelism.cp_method",
             [](const Scenario& s) { return std::string(name_in(scenarios::cp_method_names, s.parallelism.cp_method)); },
             [](const Scenario&) { return names_of_table(scenarios::cp_method_names); }},
    FieldRow{"parallelism.ep", size_of_axis<&ParallelismSpec::ep>, ep_values},
    FieldRow{"parallelism.etp", size_of_axis<&ParallelismSpec::etp>, etp_values},
    FieldRow{"parallelism.zero", [](const Scenario& s) { return std::to_string(s.parallelism.zero); }, zero_values},
    FieldRow{"training.sequence", number_of_training<&TrainingSpec::sequence>, sequences},
    FieldRow{"training.micro_batch", number_of_training<&TrainingSpec::micro_batch>, micro_batches},
    FieldRow{"training.global_batch", number_of_training<&TrainingSpec::global_batch>, global_batches},
    FieldRow{"training.precision", [](const Scenario& s) { return std::string(name_of(s.training.precision)); },
             [](const Scenario&) {
               return Values{"bf16", "fp16", "fp32", "fp8", "fp4"};
             }},
    FieldRow{"training.schedule", [](const Scenario& s) { return std::string(scenarios::name_of(s.training.schedule)); },
             schedule_values, chunks_of_schedule},
    FieldRow{"training.recompute", recompute_value, [](const Scenario&) { return names_of_table(scenarios::recompute_names); }},
    FieldRow{"training.optimizer",
             [](const Scenario& s) { return std::string(name_in(scenarios::optimizer_names, s.training.optimizer)); },
             [](const Scenario&) { return names_of_table(scenarios::optimizer_names); }},
    FieldRow{"training.overlap.tp", overlap<&TrainingSpec::overlap_tp>, both},
    FieldRow{"training.overlap.pp", overlap<&TrainingSpec::overlap_pp>, both},
    FieldRow{"training.overlap.dp", overlap<&TrainingSpec::overlap_dp>, both},
    FieldRow{"training.overlap.ep", overlap<&TrainingSpec::overlap_ep>, both},
};

}  // namespace

std::span<const FieldRow> form_fields() { return rows; }

}  // namespace tandem::studies
