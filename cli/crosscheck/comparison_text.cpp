#include <spdlog/fmt/fmt.h>

#include "cli/crosscheck/comparison.h"

namespace tandem {
namespace {

std::string percent(const std::optional<double>& error) { return error ? fmt::format("{:+.1f} %", 100 * *error) : "-"; }

std::string row(const std::string& name, std::size_t count, const SimulatedAndMeasured& time) {
  return fmt::format("  {:<28}{:>8}{:>16.3f}{:>16.3f}{:>12}", name, count, time.simulated * 1e3, time.measured * 1e3,
                     percent(time.error()));
}

std::string table_by_kind(const Comparison& comparison) {
  std::string out = fmt::format("  {:<28}{:>8}{:>16}{:>16}{:>12}{:>10}\n", "kind of task", "count", "simulated ms", "measured ms",
                                "error", "share");
  std::size_t count = 0;
  SimulatedAndMeasured all;
  for (const KindComparison& kind : comparison.kinds) {
    count += kind.count;
    all.simulated += kind.time.simulated;
    all.measured += kind.time.measured;
    out += row(kind.name, kind.count, kind.time) + fmt::format("{:>8.1f} %\n", 100 * kind.share);
  }
  return out + row("all", count, all) + '\n';
}

std::string table_by_stream(const Comparison& comparison) {
  if (comparison.streams.empty()) return "\nNo communication: nothing to overlap\n";
  std::string out =
      fmt::format("\nOverlap: the part of a stream's time in which its rank computed, too\n  {:<36}{:>16}{:>16}{:>12}{:>12}\n",
                  "stream (ranks)", "simulated ms", "measured ms", "simulated", "measured");
  const auto fraction = [](const StreamOverlap& o) { return o.busy > 0 ? fmt::format("{:.1f} %", 100 * o.fraction()) : "-"; };
  for (const StreamComparison& s : comparison.streams) {
    out += fmt::format("  {:<36}{:>16.3f}{:>16.3f}{:>12}{:>12}\n", fmt::format("{} ({})", name_of(s.stream), s.ranks),
                       s.simulated.busy * 1e3, s.measured.busy * 1e3, fraction(s.simulated), fraction(s.measured));
  }
  return out;
}

std::string table_of_worst(const Comparison& comparison) {
  std::string out = fmt::format("\nTasks that differ most\n  {:<28}{:>8}{:>16}{:>16}{:>12}\n", "task", "rank", "simulated ms",
                                "measured ms", "error");
  for (const TaskComparison& task : comparison.worst) out += row(task.name, task.rank, task.time) + '\n';
  return out;
}

std::string memory_lines(const MemoryComparison& memory) {
  const auto mb = [](Bytes bytes) { return static_cast<double>(bytes) / 1e6; };
  std::string out = fmt::format("\nMemory of the fullest rank at its peak: {:.2f} MB as simulated, {:.2f} MB as executed",
                                mb(memory.simulated), mb(memory.executed));
  return out + (memory.measured ? fmt::format(", {:.2f} MB measured\n", mb(*memory.measured)) : "; this backend measures none\n");
}

std::string order_lines(const Comparison& comparison) {
  std::string out = "\nOrder of tasks, rank by rank\n";
  for (const RankOrder& order : comparison.orders) {
    out += fmt::format("  rank {:>3}{:>8} tasks on {} streams: {}\n", order.rank, order.tasks, order.streams,
                       order.same ? "the same order" : "DIFFERENT order");
  }
  return out;
}

}  // namespace

std::string to_text(const Comparison& comparison) {
  const SimulatedAndMeasured& step = comparison.step;
  return fmt::format("  step time: simulated {:.2f} ms, measured {:.2f} ms, error {}\n\n", step.simulated * 1e3,
                     step.measured * 1e3, percent(step.error())) +
         table_by_kind(comparison) + table_by_stream(comparison) + table_of_worst(comparison) + memory_lines(comparison.memory) +
         order_lines(comparison);
}

}  // namespace tandem
