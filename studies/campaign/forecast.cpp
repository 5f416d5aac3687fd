#include "studies/campaign/forecast.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/quantities.h"
#include "runtime/base/si.h"
#include "scenarios/reading/culprit.h"
#include "scenarios/spec/parameter_count.h"
#include "sim/campaign/expected.h"
#include "sim/campaign/young_daly.h"

namespace tandem::studies {
namespace {

/// Counts the weights, as the step keeps them, and the optimizer's three states in fp32: master weights, momentum, variance.
double checkpoint_bytes(const CheckpointSpec& spec, const Scenario& scenario) {
  if (spec.bytes) return *spec.bytes;
  const double states = static_cast<double>(size_of(scenario.training.storage()) + 3 * size_of(DType::f32));
  return spec.parameter_bytes.value_or(states) * static_cast<double>(parameter_count(scenario.model));
}

CheckpointTimes times_of(const CheckpointSpec& spec, const CampaignForecast& f, const StepResult& step) {
  const double limit = spec.node_GBps > 0 ? spec.node_GBps * static_cast<double>(f.nodes) : CampaignModel::never;
  Bytes fullest = 0;
  for (const MemoryUse& stage : step.stages) fullest = std::max(fullest, stage.parameters + stage.optimizer);
  const auto bytes = static_cast<Bytes>(f.checkpoint_bytes);
  return checkpoint_times(spec.asynchronous, bytes, std::min(fullest, bytes),
                          {.write = std::min(spec.write_GBps, limit) * giga,
                           .read = std::min(spec.read_GBps, limit) * giga,
                           .copy = spec.copy_GBps * giga});
}

/// Returns the model without its interval.
CampaignModel model_of(const Campaign& campaign, const CampaignSteps& steps, const CampaignForecast& f) {
  const CampaignSpec& spec = campaign.spec;
  const auto gpus = static_cast<double>(f.gpus), nodes = static_cast<double>(f.nodes);
  const double links = nodes * static_cast<double>(campaign.scenario.cluster.nics_per_node);
  CampaignModel model;
  if (spec.tokens) model.work = std::ceil(*spec.tokens / static_cast<double>(f.tokens_per_step)) * f.step_time;
  if (spec.days) model.longest = *spec.days * day;
  model.checkpoint = times_of(spec.checkpoint, f, steps.healthy);
  model.failures = failure_rates({{spec.mtbf.gpu_hours, spec.mtbf.node_hours, spec.mtbf.link_hours, spec.mtbf.software_hours}},
                                 {{gpus, nodes, links, nodes}});
  if (spec.planned_hours > 0) model.planned_rate = 1 / (spec.planned_hours * hour);
  model.detection = spec.detection;
  model.restart = spec.restart + model.checkpoint.load;
  model.nodes = f.nodes;
  model.spare_nodes = spec.spare_nodes;
  model.repair = spec.repair_hours * hour;
  if (steps.with_slow_node) {
    model.slow_share = 1 / spec.slow_node.one_in;
    model.slow_speed = std::min(1.0, f.step_time / *steps.with_slow_node);
    if (spec.slow_node.found_hours > 0) model.slow_found = spec.slow_node.found_hours * hour;
  }
  return model;
}

/// Returns the fewest steps after which an asynchronous checkpoint is written before the next begins.
std::int64_t fewest_steps(const CampaignModel& model, Seconds step_time) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(model.checkpoint.write / step_time)));
}

std::int64_t steps_in(const CampaignModel& model, Seconds interval, Seconds step_time) {
  return std::max(fewest_steps(model, step_time), static_cast<std::int64_t>(std::llround(interval / step_time)));
}

std::int64_t best_steps(const CampaignModel& model, Seconds step_time) {
  const Seconds shortest = static_cast<double>(fewest_steps(model, step_time)) * step_time;
  return steps_in(model, best_interval(model, shortest), step_time);
}

std::int64_t used_steps(const Campaign& campaign, const CampaignModel& model, Seconds step_time) {
  const CheckpointSpec& spec = campaign.spec.checkpoint;
  if (spec.interval <= 0 && spec.interval_steps == 0) return best_steps(model, step_time);
  const std::int64_t steps =
      spec.interval_steps > 0 ? spec.interval_steps : std::max<std::int64_t>(1, std::llround(spec.interval / step_time));
  const char* field = spec.interval_steps > 0 ? "campaign.checkpoint.interval_steps" : "campaign.checkpoint.interval_s";
  const std::int64_t fewest = fewest_steps(model, step_time);
  if (steps < fewest)
    refuse(
        campaign.document,
        {{field, "campaign.checkpoint.write_GBps"},
         fmt::format("{} and campaign.checkpoint.write_GBps contradict each other: a checkpoint is written in {}, and the next "
                     "begins after {}; expected {} steps ({}) or more",
                     field, duration(model.checkpoint.write), duration(static_cast<double>(steps) * step_time), fewest,
                     duration(static_cast<double>(fewest) * step_time))});
  return steps;
}

void refuse_hopeless(const Campaign& campaign, const CampaignModel& model) {
  constexpr double least = 0.01;
  const double goodput = expected_goodput(model);
  if (goodput >= least) return;
  refuse(campaign.document,
         {{"faults.mtbf", "campaign.restart_s"},
          fmt::format("faults.mtbf and campaign.restart_s contradict each other: something fails every {} on average, and after "
                      "that it takes {} to train again, so that {} of the time is left; expected fewer failures or shorter "
                      "restarts",
                      duration(1 / model.failures.sum()), duration(model.detection + model.restart), percent(goodput))});
}

Spread spread_over(const std::vector<CampaignRun>& runs, const std::function<double(const CampaignRun&)>& value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const CampaignRun& run : runs) values.push_back(value(run));
  return spread_of(std::move(values));
}

double goodput_of(const CampaignRun& run) { return run.times.training / run.times.total(); }

void summarize(const std::vector<CampaignRun>& runs, CampaignForecast& f) {
  const double off = std::log(f.step_interval.high / f.step_time) / nine_in_ten;
  const double tokens_per_second = static_cast<double>(f.tokens_per_step) / f.step_time;
  const auto slowdown = [off](const CampaignRun& run) { return std::exp(off * run.luck); };
  const auto days = [](const CampaignRun& run) { return run.times.total() / day; };
  const auto tokens = [&](const CampaignRun& run) { return run.times.training * tokens_per_second; };
  f.days = spread_over(runs, days);
  f.tokens = spread_over(runs, tokens);
  f.days_with_step =
      f.asked_tokens ? spread_over(runs, [&](const CampaignRun& run) { return days(run) * slowdown(run); }) : f.days;
  f.tokens_with_step =
      f.asked_tokens ? f.tokens : spread_over(runs, [&](const CampaignRun& run) { return tokens(run) / slowdown(run); });
  f.goodput = spread_over(runs, goodput_of);
  f.interruptions = spread_over(runs, [](const CampaignRun& run) { return run.failures.sum(); });
  f.times = mean_times(runs);
  const auto count = static_cast<double>(runs.size());
  for (const CampaignRun& run : runs) {
    for (std::size_t i = 0; i < component_count; ++i) f.failures.values[i] += run.failures.values[i] / count;
    f.planned_stops += run.planned_stops / count;
    f.slow_found += run.slow_found / count;
  }
}

class IntervalForecasts {
 public:
  IntervalForecasts(CampaignForecast& f, std::size_t jobs, Progress* progress) : f_(f), jobs_(jobs), progress_(progress) {}

  std::vector<CampaignRun> play(std::int64_t steps, const std::string& name) const {
    CampaignModel model = f_.model;
    model.interval = static_cast<double>(steps) * f_.step_time;
    return play_campaigns(model, f_.seed, static_cast<std::size_t>(f_.replicas), jobs_,
                          shown_in(progress_, "campaigns, interval " + name));
  }

  void add(const std::string& name, std::int64_t steps, const std::vector<CampaignRun>& runs) {
    CampaignModel model = f_.model;
    model.interval = static_cast<double>(steps) * f_.step_time;
    f_.intervals.push_back({.name = name,
                            .steps = steps,
                            .interval = model.interval,
                            .goodput = spread_over(runs, goodput_of),
                            .expected_goodput = expected_goodput(model)});
  }

  void add(const std::string& name, std::int64_t steps) {
    const auto same = std::ranges::find(f_.intervals, steps, &IntervalForecast::steps);
    if (same == f_.intervals.end()) {
      add(name, steps, play(steps, name));
    } else {
      IntervalForecast copy = *same;
      copy.name = name;
      f_.intervals.push_back(copy);
    }
  }

 private:
  CampaignForecast& f_;
  std::size_t jobs_;
  Progress* progress_;
};

CampaignForecast facts_of(const Campaign& campaign, const CampaignSteps& steps) {
  const Scenario& scenario = campaign.scenario;
  const CampaignSpec& spec = campaign.spec;
  CampaignForecast f;
  f.scenario = scenario.name;
  f.preset = spec.preset;
  f.gpu = steps.healthy.gpu;
  f.gpus = scenario.cluster.gpus;
  f.nodes = f.gpus / scenario.cluster.gpus_per_node;
  f.spare_nodes = spec.spare_nodes;
  f.tokens_per_step = steps.healthy.tokens;
  f.step_time = steps.healthy.step_time;
  f.step_interval = step_interval(steps.healthy);
  f.slow_step_time = steps.with_slow_node;
  f.asked_tokens = spec.tokens;
  f.asked_days = spec.days;
  f.replicas = spec.replicas;
  f.seed = spec.seed;
  f.asynchronous = spec.checkpoint.asynchronous;
  f.parameters = parameter_count(scenario.model);
  f.checkpoint_bytes = checkpoint_bytes(spec.checkpoint, scenario);
  f.interval_was_given = spec.checkpoint.interval > 0 || spec.checkpoint.interval_steps > 0;
  return f;
}

}  // namespace

CampaignForecast forecast(const Campaign& campaign, const CampaignSteps& steps, std::size_t jobs, Progress* progress) {
  CampaignForecast f = facts_of(campaign, steps);
  f.model = model_of(campaign, steps, f);
  const std::int64_t used = used_steps(campaign, f.model, f.step_time);
  f.model.interval = static_cast<double>(used) * f.step_time;
  refuse_hopeless(campaign, f.model);

  IntervalForecasts intervals(f, jobs, progress);
  const std::vector<CampaignRun> runs = intervals.play(used, "used");
  summarize(runs, f);
  intervals.add("used", used, runs);
  const std::int64_t fewest = fewest_steps(f.model, f.step_time);
  intervals.add("half", std::max(fewest, used / 2));
  intervals.add("twice", 2 * used);
  intervals.add("best", best_steps(f.model, f.step_time));
  const Seconds stall = f.model.checkpoint.stall;
  intervals.add("young", steps_in(f.model, young_interval(stall, f.mtbf()), f.step_time));
  intervals.add("daly", steps_in(f.model, daly_interval(stall, f.mtbf()), f.step_time));
  return f;
}

}  // namespace tandem::studies
