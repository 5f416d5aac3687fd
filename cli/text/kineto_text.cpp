#include "cli/text/kineto_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "cli/text/simulated_and_measured.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

/// Of what the other side may not have at all.
TextCell time_of(Seconds time) { return time > 0 ? milliseconds(time) : TextCell{"-"}; }
TextCell error_of_both(const SimulatedAndMeasured& time) { return time.simulated > 0 ? error_of(time) : TextCell{"-"}; }

TextCell count_of(double count) { return {count > 0 ? fmt::format("{:g}", count) : "-"}; }

Table of_parts(const AgainstSimulation& comparison) {
  Table table({{"part of the step", Kind::name}, {"simulated ms"}, {"measured ms"}, {"error"}});
  for (const PartAgainstSimulation& part : comparison.parts)
    table.add({{part.name}, time_of(part.time.simulated), time_of(part.time.measured), error_of_both(part.time)});
  return table;
}

Table of_kinds(const AgainstSimulation& comparison) {
  Table table({{"kind of task", Kind::name},
               {"simulated", Kind::number, 2},
               {"measured", Kind::number, 2},
               {"simulated ms"},
               {"measured ms"},
               {"error"},
               {"one by one", Kind::number, 1}});
  for (const KindAgainstSimulation& kind : comparison.kinds)
    table.add({{kind.name},
               count_of(kind.simulated_count),
               count_of(kind.measured_count),
               time_of(kind.time.simulated),
               time_of(kind.time.measured),
               error_of_both(kind.time),
               {kind.by_order ? percent(*kind.by_order) : "-"}});
  return table;
}

Table of_other_kernels(const AgainstSimulation& comparison) {
  Table table({{"kernel", Kind::name}, {"count"}, {"ms"}});
  for (const KindSum& kernel : comparison.other_kernels)
    table.add({{kernel.name}, {std::to_string(kernel.count)}, time_of(kernel.time)});
  return table;
}

std::string ranks_of(const AgainstSimulation& comparison) {
  if (comparison.ranks.size() == 1) return fmt::format("rank {} of {}", comparison.ranks.front(), comparison.world_size);
  return fmt::format("{} of {} ranks", comparison.ranks.size(), comparison.world_size);
}

}  // namespace

std::string to_text(const AgainstSimulation& comparison, const Screen& screen) {
  Page page(screen);
  std::string title = comparison.scenario + ": " + ranks_of(comparison) + ", traced by torch.profiler";
  if (!comparison.device.empty()) title += " on " + comparison.device;
  if (!comparison.step.empty()) title += ", " + comparison.step;
  page.line(title, Style::strong)
      .empty_line()
      .line(fmt::format("step time: simulated {:.2f} ms, measured {:.2f} ms, error {}", comparison.step_time.simulated * 1e3,
                        comparison.step_time.measured * 1e3, error_of(comparison.step_time).text),
            Style::strong, 2)
      .empty_line()
      .table(of_parts(comparison));
  page.heading("By kind, of a rank, overlapped or not; one by one: the median difference of the first and the first, and so on")
      .table(of_kinds(comparison));
  if (!comparison.other_kernels.empty()) page.heading("The largest of the other kernels").table(of_other_kernels(comparison));
  page.empty_line();
  for (const std::string& note : comparison.notes) page.line("note: " + note, Style::faint);
  return page.text();
}

}  // namespace tandem::cli
