#include "cli/text/graph_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

Table graph_parts(const GraphResult& r) {
  using Kind = Column::Kind;
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::number}, {"", Kind::bar}});
  const auto add = [&](const std::string& what, Seconds time, Style style) {
    const double share = r.step_time > 0 ? time / r.step_time : 0;
    table.add({{what}, {duration(time)}, {percent(share)}, bar_of(share, style)});
  };
  add("compute", r.parts.compute(), Style::cyan);
  for (std::size_t axis = 1; axis < axis_count; ++axis)
    if (r.parts.exposed[axis] > 0) add(fmt::format("exposed {}", axis_names[axis]), r.parts.exposed[axis], Style::yellow);
  if (r.parts.exposed_on(Axis::none) > 0) add("exposed, axis not known", r.parts.exposed_on(Axis::none), Style::yellow);
  add("bubble", r.parts.bubble, Style::magenta);
  if (r.parts.optimizer() > 0) add("optimizer", r.parts.optimizer(), Style::green);
  return table;
}

/// A kernel of which the time alone is known stands as a fill (studies/recorded/recorded_dag.cpp), communication of which the
/// axis is not known as that of none.
std::string kind_name(const std::string& kind) {
  constexpr std::string_view no_axis = " (none)";
  if (kind == "fill") return "recorded kernels";
  return kind.ends_with(no_axis) ? kind.substr(0, kind.size() - no_axis.size()) : kind;
}

Table graph_kinds(const GraphResult& r) {
  using Kind = Column::Kind;
  constexpr std::size_t most = 12;
  Table table({{"kind", Kind::name}, {"phase", Kind::name}, {"count", Kind::number}, {"time", Kind::number}});
  for (std::size_t i = 0; i < std::min(most, r.kinds.size()); ++i)
    table.add({{kind_name(r.kinds[i].name)},
               {std::string(name_of(r.kinds[i].phase))},
               {fmt::format("{:.4g}", r.kinds[i].count)},
               {duration(r.kinds[i].time)}});
  return table;
}

}  // namespace

std::string to_text(const GraphResult& r, const Screen& screen) {
  using Kind = Column::Kind;
  Table figures({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  figures.add(
      {{"step time"},
       {duration(r.step_time), Style::strong},
       {fmt::format("between {} (all overlapped) and {} (nothing overlapped)", duration(r.lower_bound), duration(r.upper_bound)),
        Style::faint}});
  if (r.overlap.all.busy > 0)
    figures.add({{"communication"},
                 {duration(r.overlap.all.busy), Style::strong},
                 {fmt::format("of a rank, {} of it while a kernel runs", percent(r.overlap.all.hidden())), Style::faint}});
  return Page(screen)
      .line(fmt::format("{}: {} x {}, a graph as it stands", r.name, r.gpus, r.gpu), Style::strong)
      .empty_line()
      .table(figures)
      .heading("Where the time goes (mean over ranks)")
      .table(graph_parts(r))
      .heading("Tasks of a rank (mean over ranks)")
      .table(graph_kinds(r))
      .empty_line()
      .line(fmt::format("Simulated {} ranks as {} classes, {} link classes, {} tasks, in {}", r.gpus, r.rank_classes,
                        r.link_classes, r.tasks, duration(r.wall)),
            Style::faint)
      .text();
}

}  // namespace tandem::cli
