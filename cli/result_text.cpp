#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "cli/result.h"

namespace tandem {
namespace {

constexpr double gigabyte = 1e9;

std::string seconds(Seconds s) {
  if (s >= 1) return fmt::format("{:.3f} s", s);
  if (s >= 1e-3) return fmt::format("{:.2f} ms", s * 1e3);
  return fmt::format("{:.1f} us", s * 1e6);
}

void line(std::string& out, std::string_view what, const std::string& value, const std::string& note = "") {
  out += fmt::format("  {:<26}{:>14}{}{}\n", what, value, note.empty() ? "" : "   ", note);
}

void part(std::string& out, std::string_view what, Seconds time, Seconds step) {
  const double share = time / step;
  const auto bar = static_cast<std::size_t>(std::lround(share * 40));
  out += fmt::format("  {:<26}{:>14}{:>8.1f} %  {}\n", what, seconds(time), 100 * share, std::string(bar, '#'));
}

std::string stage_line(const StepResult& r, std::size_t s) {
  const MemoryUse& m = r.stages[s];
  const auto gb = [](Bytes bytes) { return static_cast<double>(bytes) / gigabyte; };
  return fmt::format("  {:>5}{:>12.2f}{:>11.2f}{:>11.2f}{:>13.2f}{:>9.2f}{:>9.2f}{:>8.0f} %{}\n", s, gb(m.parameters),
                     gb(m.gradients), gb(m.optimizer), gb(m.activations), gb(m.buffers), gb(m.peak()),
                     100.0 * gb(m.peak()) / gb(r.gpu_memory), s == r.fullest_stage() ? "  <- fullest" : "");
}

}  // namespace

std::string to_text(const StepResult& r) {
  std::string out = fmt::format("{}: {} x {}, {} tokens a step\n\n", r.scenario, r.gpus, r.gpu, r.tokens);
  line(out, r.sync_every > 1 ? "step time, mean" : "step time", seconds(r.step_time),
       fmt::format("between {} (roofline, all overlapped) and {} (nothing overlapped)", seconds(r.lower_bound),
                   seconds(r.upper_bound)));
  if (r.step_kinds) {
    line(out, "local step", seconds(r.step_kinds->local),
         fmt::format("{} of {}; {} the one that averages the replicas' weights", r.sync_every - 1, r.sync_every,
                     seconds(r.step_kinds->sync)));
  }
  if (r.merged_fold) {
    line(out, "hash collisions", fmt::format("{} to {}", seconds(r.merged_fold->lower), seconds(r.merged_fold->upper)),
         fmt::format("step time without any, and with all at once; loads merged within a factor {:g}",
                     1 + r.merged_fold->tolerance));
  }
  line(out, "tokens/s/GPU", fmt::format("{:.1f}", r.tokens_per_second_per_gpu));
  line(out, "model TFLOP/s/GPU", fmt::format("{:.1f}", r.model_flops_per_gpu / 1e12), "causal attention counted at half");
  line(out, "MFU", fmt::format("{:.1f} %", 100 * r.mfu), fmt::format("HFU {:.1f} %", 100 * r.hfu));
  out += "\nWhere the time goes (mean over ranks)\n";
  part(out, "compute", r.parts.compute(), r.step_time);
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}) {
    const Seconds time = r.parts.exposed_on(axis);
    if (time > 0) part(out, fmt::format("exposed {}", name_of(axis)), time, r.step_time);
  }
  part(out, "bubble", r.parts.bubble, r.step_time);
  part(out, "optimizer", r.parts.optimizer(), r.step_time);

  out += fmt::format("\nMemory by pipeline stage, GB at the peak; a GPU has {:.1f} GB\n",
                     static_cast<double>(r.gpu_memory) / gigabyte);
  out += fmt::format("  {:>5}{:>12}{:>11}{:>11}{:>13}{:>9}{:>9}{:>10}\n", "stage", "parameters", "gradients", "optimizer",
                     "activations", "buffers", "peak", "of GPU");
  for (std::size_t s = 0; s < r.stages.size(); ++s) out += stage_line(r, s);
  const MemoryUse& fullest = r.stages[r.fullest_stage()];
  out += fmt::format("  {}: stage {} is fullest, {} into the step\n", r.fits() ? "fits" : "DOES NOT FIT", r.fullest_stage(),
                     seconds(fullest.peak_at));

  out += fmt::format("\n{} {} ranks as {} classes, {} link classes, {} tasks, in {} and {:.0f} MB ({})\n",
                     r.run.backend == "simgrid" ? "Simulated" : "Executed", r.gpus, r.rank_classes, r.link_classes, r.tasks,
                     seconds(r.run.wall), static_cast<double>(r.run.peak_rss) / 1e6, r.run.backend);
  return out;
}

}  // namespace tandem
