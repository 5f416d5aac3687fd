#include "cli/text/crosscheck_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "cli/text/simulated_and_measured.h"
#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

Table by_kind(const Comparison& comparison) {
  Table table({{"kind of task", Kind::name},
               {"count", Kind::number, 1},
               {"simulated ms"},
               {"measured ms"},
               {"error"},
               {"share", Kind::number, 2}});
  const auto add = [&](const std::string& name, std::size_t count, const SimulatedAndMeasured& time, const std::string& share) {
    table.add(
        {{name}, {std::to_string(count)}, milliseconds(time.simulated), milliseconds(time.measured), error_of(time), {share}});
  };
  std::size_t count = 0;
  SimulatedAndMeasured all;
  for (const KindComparison& kind : comparison.kinds) {
    count += kind.count;
    all.simulated += kind.time.simulated;
    all.measured += kind.time.measured;
    add(kind.name, kind.count, kind.time, percent(kind.share));
  }
  add("all", count, all, "");
  return table;
}

Table by_stream(const Comparison& comparison) {
  Table table({{"stream (ranks)", Kind::name},
               {"simulated ms", Kind::number, 2},
               {"measured ms", Kind::number, 1},
               {"simulated"},
               {"measured"}});
  const auto fraction = [](const StreamOverlap& o) { return TextCell{o.busy > 0 ? percent(o.fraction()) : "-"}; };
  for (const StreamComparison& s : comparison.streams) {
    table.add({{fmt::format("{} ({})", name_of(s.stream), s.ranks)},
               milliseconds(s.simulated.busy),
               milliseconds(s.measured.busy),
               fraction(s.simulated),
               fraction(s.measured)});
  }
  return table;
}

Table of_worst(const Comparison& comparison) {
  Table table({{"task", Kind::name}, {"rank", Kind::number, 1}, {"simulated ms"}, {"measured ms"}, {"error"}});
  for (const TaskComparison& task : comparison.worst)
    table.add({{task.name},
               {std::to_string(task.rank)},
               milliseconds(task.time.simulated),
               milliseconds(task.time.measured),
               error_of(task.time)});
  return table;
}

Table of_orders(const Comparison& comparison) {
  Table table({{"rank"}, {"tasks"}, {"streams"}, {"", Kind::name}});
  for (const RankOrder& order : comparison.orders) {
    table.add_numbered(order.rank, {{std::to_string(order.tasks)},
                                    {std::to_string(order.streams)},
                                    {order.same ? "the same order" : "DIFFERENT order", order.same ? Style::green : Style::red}});
  }
  return table;
}

std::string memory_line(const MemoryComparison& memory) {
  const auto mb = [](Bytes bytes) { return static_cast<double>(bytes) / 1e6; };
  const std::string line = fmt::format("Memory of the fullest rank at its peak: {:.2f} MB as simulated, {:.2f} MB as executed",
                                       mb(memory.simulated), mb(memory.executed));
  return line + (memory.measured ? fmt::format(", {:.2f} MB measured", mb(*memory.measured)) : "; this backend measures none");
}

}  // namespace

std::string to_text(const Comparison& comparison, const Screen& screen) {
  const SimulatedAndMeasured& step = comparison.step;
  Page page(screen);
  page.line(fmt::format("step time: simulated {:.2f} ms, measured {:.2f} ms, error {}", step.simulated * 1e3, step.measured * 1e3,
                        error_of(step).text),
            Style::strong, 2)
      .empty_line()
      .table(by_kind(comparison));
  if (comparison.streams.empty())
    page.empty_line().line("No communication: nothing to overlap");
  else
    page.heading("Overlap: the part of a stream's time in which its rank computed, too").table(by_stream(comparison));
  page.heading("Tasks that differ most").table(of_worst(comparison));
  page.empty_line().line(memory_line(comparison.memory));
  page.heading("Order of tasks, rank by rank").table(of_orders(comparison));
  return page.text();
}

}  // namespace tandem::cli
