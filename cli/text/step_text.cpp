#include "cli/text/step_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "studies/step/step_interval.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

/// ", wider since no run was measured with this GPU"
std::string never_measured(const Interval& interval) {
  if (interval.seen_gpu && interval.seen_framework) return "";
  return fmt::format(", wider as no run was measured with this {}", interval.seen_framework ? "GPU"
                                                                    : interval.seen_gpu     ? "framework"
                                                                                            : "GPU or framework");
}

double share_of(const Interval& interval, const Remedy& remedy) {
  double share = 0;
  for (const ErrorPart part : remedy.parts) share += interval.share_of(part);
  return share;
}

Table figures(const StepResult& r) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  const auto add = [&](const std::string& what, const std::string& value, const std::string& note = "") {
    table.add({{what}, {value, Style::strong}, {note, Style::faint}});
  };
  add(r.sync_every > 1 ? "step time, mean" : "step time", duration(r.step_time),
      fmt::format("between {} (roofline, all overlapped) and {} (nothing overlapped)", duration(r.lower_bound),
                  duration(r.upper_bound)));
  if (r.is_simulated()) {
    const Interval interval = step_interval(r);
    add("give or take", percent(interval.high / r.step_time - 1),
        fmt::format("{} to {} in nine cases of ten{}", duration(interval.low), duration(interval.high),
                    never_measured(interval)));
    const Remedy& remedy = best_remedy(interval);
    add("  narrowed to", percent(interval.give_or_take_without(remedy.parts)),
        fmt::format("by measuring {} ({} of the doubt)", remedy.what, percent(share_of(interval, remedy))));
  }
  if (r.jitter) {
    const JitterTimes& jitter = *r.jitter;
    add("with jitter, p50", duration(jitter.p50),
        fmt::format("p90 {}, p99 {}, mean {}; {} steps drawn in {}", duration(jitter.p90), duration(jitter.p99),
                    duration(jitter.mean), jitter.draws, duration(jitter.wall)));
  }
  if (r.run.undated_step)
    add("undated", duration(*r.run.undated_step), "the step once more, when nothing recorded when its tasks begin and end");
  if (r.step_kinds) {
    add("local step", duration(r.step_kinds->local),
        fmt::format("{} of {}; {} the one that averages the replicas' weights", r.sync_every - 1, r.sync_every,
                    duration(r.step_kinds->sync)));
  }
  if (r.merged_fold) {
    add("hash collisions", fmt::format("{} to {}", duration(r.merged_fold->lower), duration(r.merged_fold->upper)),
        fmt::format("step time without any, and with all at once; loads merged within a factor {:g}",
                    1 + r.merged_fold->tolerance));
  }
  add("tokens/s/GPU", fmt::format("{:.1f}", r.tokens_per_second_per_gpu));
  if (r.documents) {
    add("documents", fmt::format("{}", r.documents->count),
        fmt::format("of {:.0f} tokens on average, the longest of {}; {} of the pairs of whole sequences{}", r.mean_document(),
                    r.documents->longest, percent(r.documents->attention_share),
                    r.documents->padding > 0 ? ", " + percent(r.padding_share()) + " of the tokens are padding" : ""));
    add("  heaviest", fmt::format("{:.2f} x", r.documents->heaviest_micro_batch),
        fmt::format("pairs of the heaviest micro-batch over the mean; {:.2f} x of the heaviest replica",
                    r.documents->heaviest_replica));
    if (r.documents->heaviest_rank != 1 || r.documents->mean_ranks != 1)
      add("  dynamic cp", fmt::format("{:.2f}", r.documents->mean_ranks),
          fmt::format("ranks share a token's document on average; {:.2f} x the mean pairs on the heaviest rank",
                      r.documents->heaviest_rank));
    if (r.documents->padding > 0)
      add("  padding", percent(r.documents->padding_flops_share),
          fmt::format("of the model FLOPs; without it MFU is {}", percent(r.mfu_without_padding())));
  }
  add("model TFLOP/s/GPU", fmt::format("{:.1f}", r.model_flops_per_gpu / 1e12),
      r.causal ? "causal attention counted at half" : "attention counted in full");
  add("MFU", percent(r.mfu), "HFU " + percent(r.hfu));
  return table;
}

Table parts(const StepResult& r) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::number}, {"", Kind::bar}});
  const auto add = [&](const std::string& what, Seconds time, Style style) {
    table.add({{what}, {duration(time)}, {percent(time / r.step_time)}, bar_of(time / r.step_time, style)});
  };
  add("compute", r.parts.compute(), Style::cyan);
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp, Axis::host}) {
    if (r.parts.exposed_on(axis) > 0) add(fmt::format("exposed {}", name_of(axis)), r.parts.exposed_on(axis), Style::yellow);
  }
  add("bubble", r.parts.bubble, Style::magenta);
  add("optimizer", r.parts.optimizer(), Style::green);
  return table;
}

Table memory(const StepResult& r) {
  Table table({{"stage"},
               {"parameters", Kind::number, 4},
               {"gradients", Kind::number, 3},
               {"optimizer", Kind::number, 2},
               {"activations", Kind::number, 5},
               {"buffers", Kind::number, 1},
               {"peak"},
               {"of GPU"},
               {"", Kind::note}});
  for (std::size_t stage = 0; stage < r.stages.size(); ++stage) {
    const MemoryUse& m = r.stages[stage];
    const Style style = m.peak() > r.gpu_memory ? Style::red : Style::strong;
    const double share = static_cast<double>(m.peak()) / static_cast<double>(r.gpu_memory);
    table.add_numbered(stage, {{gigabytes(m.parameters)},
                               {gigabytes(m.gradients)},
                               {gigabytes(m.optimizer)},
                               {gigabytes(m.activations)},
                               {gigabytes(m.buffers)},
                               {gigabytes(m.peak()), style},
                               {fmt::format("{:.0f} %", 100 * share), style},
                               {m.peak() == r.peak_memory() ? "fullest" : "", Style::faint}});
  }
  return table;
}

std::string in_units(double value, const std::string& unit) {
  constexpr std::array<std::pair<double, const char*>, 4> scales{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, name] : scales)
    if (value >= scale) return fmt::format("{:.2f} {}{}", value / scale, name, unit);
  return value == 0 ? "0" : fmt::format("{:g} {}", value, unit);
}

Table model_figures(const StepMetrics& m) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  const auto count = [](std::int64_t parameters) { return in_units(static_cast<double>(parameters), ""); };
  const bool all = m.active_parameters == m.parameters;
  table.add({{"parameters"},
             {count(m.parameters), Style::strong},
             {all ? "all of which a token passes" : count(m.active_parameters) + " of which a token passes", Style::faint}});
  table.add({{"FLOPs per byte"},
             {fmt::format("{:.1f}", m.intensity()), Style::strong},
             {fmt::format("of GPU memory, kernels alone; from {:.1f} on arithmetic is the limit", m.ridge), Style::faint}});
  return table;
}

Table communication(const StepMetrics& m) {
  Table table({{"axis", Kind::name}, {"sent", Kind::number}, {"running", Kind::number}, {"hidden", Kind::number}});
  const auto add = [&](std::string_view axis, double sent, const CommunicationOverlap::Times& times) {
    table.add({{std::string(axis)}, {in_units(sent, "B")}, {duration(times.busy)}, {percent(times.hidden())}});
  };
  for (const Axis axis : communication_axes)
    if (m.overlap.on(axis).busy > 0) add(name_of(axis), m.sent[static_cast<std::size_t>(axis)], m.overlap.on(axis));
  add("all", m.all_sent(), m.overlap.all);
  return table;
}

Table layers(const StepMetrics& m) {
  std::vector<Column> columns{{"layer"}, {"activations"}};
  std::vector<Axis> axes;
  for (const Axis axis : layer_axes) {
    const auto sends = [&](const LayerTraffic& layer) { return layer.sent[static_cast<std::size_t>(axis)] > 0; };
    if (std::ranges::any_of(m.layers, sends)) axes.push_back(axis);
  }
  for (const Axis axis : axes) columns.push_back({"sent, " + std::string(name_of(axis))});
  Table table(std::move(columns));
  for (const LayerTraffic& layer : m.layers) {
    std::vector<TextCell> row{{in_units(layer.kept, "B")}};
    for (const Axis axis : axes) row.push_back({in_units(layer.sent[static_cast<std::size_t>(axis)], "B")});
    table.add_numbered(static_cast<std::size_t>(layer.layer), row);
  }
  return table;
}

/// "144 of expert 0, 94 of expert 2", those first that drop most.
std::string dropped_by_expert(const ExpertBalance& balance) {
  constexpr std::size_t most_told = 4;
  const std::vector<std::int32_t> dropped = balance.dropped();
  std::vector<std::size_t> order;
  for (std::size_t e = 0; e < dropped.size(); ++e)
    if (dropped[e] > 0) order.push_back(e);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t e) { return dropped[e]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most_told, order.size()); ++i)
    text += fmt::format("{}{} of expert {}", i == 0 ? "" : ", ", dropped[order[i]], order[i]);
  return order.size() > most_told ? text + fmt::format(" and some of {} more", order.size() - most_told) : text;
}

Table expert_figures(const ExpertBalance& balance) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  const auto add = [&](const std::string& what, const std::string& value, const std::string& note) {
    table.add({{what}, {value, Style::strong}, {note, Style::faint}});
  };
  if (balance.expert_choice) {
    add("each takes", std::to_string(balance.slots.front()), fmt::format("of {} tokens", balance.tokens));
    add("no one takes", percent(balance.untaken_share()), "of the tokens, if each expert chooses at random");
    return table;
  }
  const auto busiest = std::ranges::max_element(balance.choices);
  add("busiest expert", std::to_string(*busiest),
      fmt::format("of {} choices: expert {}, with {:.4g} times its even share", balance.all_choices(),
                  busiest - balance.choices.begin(), balance.safe_capacity_factor()));
  const std::int64_t dropped = balance.all_dropped();
  add("dropped", percent(balance.dropped_share()), dropped == 0 ? "" : dropped_by_expert(balance));
  if (dropped == 0 && !balance.safe_step_time) return table;
  add("safe capacity", fmt::format("{:.4g}", balance.safe_capacity_factor()),
      balance.safe_step_time ? "the least factor that drops nothing: a step of " + duration(*balance.safe_step_time)
                             : "the least factor that drops nothing");
  return table;
}

std::string servers_text(const SyncPolicy& policy) {
  if (policy.servers == 0) return "";
  return fmt::format(", {} server{}", policy.servers, policy.servers == 1 ? "" : "s");
}

std::string policy_name(const SyncPolicy& policy) {
  switch (policy.kind) {
    case SyncKind::synchronous:
      break;
    case SyncKind::backup:
      return fmt::format("{} backup{}, late {}", policy.backups, policy.backups == 1 ? "" : "s",
                         policy.abandons ? "abandon" : "finish");
    case SyncKind::stale:
      return fmt::format("stale, {} ahead", policy.staleness) + servers_text(policy);
    case SyncKind::asynchronous:
      return "asynchronous" + servers_text(policy);
    case SyncKind::local:
      return fmt::format("local, {} steps", policy.every);
  }
  return "synchronous";
}

std::string replicas_sentence(const SyncComparison& sync) {
  const std::string own = sync.fastest_step == sync.slowest_step
                              ? duration(sync.slowest_step)
                              : fmt::format("{} to {}", duration(sync.fastest_step), duration(sync.slowest_step));
  return fmt::format("Policies against stragglers: {} replicas of {}, each {} by itself{}, and {} for the exchange",
                     sync.replicas, sync.ranks_of_replica == 1 ? "a GPU" : fmt::format("{} GPUs", sync.ranks_of_replica), own,
                     sync.deviation > 0 ? fmt::format(" (deviation {})", duration(sync.deviation)) : "", duration(sync.exchange));
}

Table policies(const SyncComparison& sync) {
  Table table({{"policy", Kind::name},
               {"batch", Kind::number},
               {"tokens/s/GPU", Kind::number},
               {"speedup", Kind::number},
               {"dropped", Kind::number},
               {"waiting", Kind::number},
               {"updates lacked", Kind::number},
               {"at most", Kind::number},
               {"steps ahead", Kind::number},
               {"", Kind::note}});
  for (const PlayedPolicy& played : sync.policies)
    table.add({{policy_name(played.policy)},
               {duration(played.batch_time), Style::strong},
               {fmt::format("{:.1f}", played.tokens_per_second_per_gpu)},
               {fmt::format("{:.3f}", played.speedup)},
               {percent(played.dropped_share)},
               {percent(played.waiting_share)},
               {fmt::format("{:.1f}", played.mean_staleness)},
               {std::to_string(played.most_stale)},
               {std::to_string(played.most_ahead)},
               {played.policy.servers > 0 ? "servers busy " + percent(played.serving_share) : "", Style::faint}});
  return table;
}

}  // namespace

std::string to_text(const StepResult& r, const Screen& screen) {
  Page page(screen);
  page.line(fmt::format("{}: {} x {}, {} tokens a step", r.scenario, r.gpus, r.gpu, r.tokens), Style::strong).empty_line();
  page.table(figures(r)).heading("Where the time goes (mean over ranks)").table(parts(r));

  const MemoryUse& fullest = r.stages[r.fullest_stage()];
  page.heading(
          fmt::format("Memory by pipeline stage, GB at the peak; a GPU has {:.1f} GB", static_cast<double>(r.gpu_memory) / 1e9))
      .table(memory(r))
      .line(fmt::format("{}: stage {} is fullest, {} into the step", r.fits() ? "fits" : "DOES NOT FIT", r.fullest_stage(),
                        duration(fullest.peak_at)),
            r.fits() ? Style::green : Style::red, 2);
  if (fullest.graphs() > 0)
    page.line(fmt::format("of that CUDA graphs hold {} GB all the time: what they read, and what they work in",
                          gigabytes(fullest.graphs())),
              Style::faint, 2);
  if (const auto& most = r.device_memory) {
    const bool has_room = most->device() <= r.gpu_memory;
    const char* room = has_room ? most->retries > 0 ? ", for which it gives back what it kept" : "" : ", more than there is";
    page.line(fmt::format("of the fullest GPU PyTorch allocates {} GB and reserves {} GB; with NCCL and CUDA {} GB{}",
                          gigabytes(most->allocated), gigabytes(most->reserved), gigabytes(most->device()), room),
              has_room ? Style::faint : Style::yellow, 2);
  }
  if (r.metrics) {
    page.heading("Model and arithmetic").table(model_figures(*r.metrics));
    if (r.metrics->overlap.all.busy > 0)
      page.heading("Communication of a rank in a step (mean over ranks); hidden: while a kernel runs")
          .table(communication(*r.metrics));
    if (!r.metrics->layers.empty())
      page.heading("By layer: activations kept for the backward of a micro-batch, bytes sent in a step (mean over its ranks)")
          .table(layers(*r.metrics));
  }
  if (r.experts)
    page.heading(fmt::format("Experts, of {} tokens that are routed together", r.experts->tokens))
        .table(expert_figures(*r.experts));

  if (r.sync)
    page.heading(replicas_sentence(*r.sync))
        .table(policies(*r.sync))
        .line(fmt::format("batch: as many gradients as there are replicas; {} steps of each, after as many that do not count",
                          r.sync->steps),
              Style::faint, 2);

  const bool some = r.run.tasks_simulated > 0 && r.run.tasks_simulated < r.tasks;
  const std::string tasks = some ? fmt::format("{} of {}", r.run.tasks_simulated, r.tasks) : std::to_string(r.tasks);
  page.empty_line().line(fmt::format("{} {} ranks as {} classes, {} link classes, {} tasks, in {} and {:.0f} MB ({})",
                                     r.is_simulated() ? "Simulated" : "Executed", r.gpus, r.rank_classes, r.link_classes, tasks,
                                     duration(r.run.wall), static_cast<double>(r.run.peak_rss) / 1e6, r.run.backend),
                         Style::faint);
  return page.text();
}

std::string out_of_memory_sentence(const std::string& place, const StepResult& result) {
  const MemoryUse& stage = result.stages[result.fullest_stage()];
  const auto gb = [](Bytes bytes) { return static_cast<double>(bytes) / 1e9; };
  return fmt::format(
      "{}: stage {} needs {:.1f} GB of a GPU's {:.1f} GB (parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, activations "
      "{:.1f}, buffers {:.1f}); shard or recompute more, or pass --allow-oom",
      place, result.fullest_stage(), gb(stage.peak()), gb(result.gpu_memory), gb(stage.parameters), gb(stage.gradients),
      gb(stage.optimizer), gb(stage.activations), gb(stage.buffers));
}

}  // namespace tandem::cli
