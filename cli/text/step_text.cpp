#include "cli/text/step_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "studies/step/step_interval.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

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
        fmt::format("{} to {} in nine cases of ten", duration(interval.low), duration(interval.high)));
  }
  if (r.jitter) {
    const JitterTimes& jitter = *r.jitter;
    add("with jitter, p50", duration(jitter.p50),
        fmt::format("p90 {}, p99 {}, mean {}; {} steps drawn in {}", duration(jitter.p90), duration(jitter.p99),
                    duration(jitter.mean), jitter.draws, duration(jitter.wall)));
  }
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
  add("model TFLOP/s/GPU", fmt::format("{:.1f}", r.model_flops_per_gpu / 1e12), "causal attention counted at half");
  add("MFU", percent(r.mfu), "HFU " + percent(r.hfu));
  return table;
}

Table parts(const StepResult& r) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::number}, {"", Kind::bar}});
  const auto add = [&](const std::string& what, Seconds time, Style style) {
    table.add({{what}, {duration(time)}, {percent(time / r.step_time)}, bar_of(time / r.step_time, style)});
  };
  add("compute", r.parts.compute(), Style::cyan);
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}) {
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

  page.empty_line().line(fmt::format("{} {} ranks as {} classes, {} link classes, {} tasks, in {} and {:.0f} MB ({})",
                                     r.is_simulated() ? "Simulated" : "Executed", r.gpus, r.rank_classes, r.link_classes, r.tasks,
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
