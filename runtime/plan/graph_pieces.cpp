#include "runtime/plan/graph_pieces.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

bool is_captured(const Dag& dag, TaskId id, GraphScope scope) {
  const Task& task = dag.tasks[id];
  if (task.stream != Stream::compute || is_communication(task.op) || task.layer < 0) return false;
  return scope == GraphScope::layer || std::ranges::find(dag.software.captured, task.op) != dag.software.captured.end();
}

/// The gradients of inputs and those of weights are one pass, unless the schedule parts them.
auto place_of(const Task& task) {
  const Phase phase = task.phase == Phase::backward_weight ? Phase::backward_input : task.phase;
  return std::tuple(task.layer, task.micro_batch, task.chunk, phase);
}

}  // namespace

std::optional<GraphScope> graph_scope_named(std::string_view name) {
  for (const GraphScope scope : {GraphScope::none, GraphScope::attention, GraphScope::layer, GraphScope::full})
    if (name == name_of(scope)) return scope;
  return std::nullopt;
}

GraphScope simulated_scope(const Software& software) {
  if (software.issues_for_free()) return GraphScope::full;
  return software.captured.empty() ? GraphScope::none : GraphScope::attention;
}

std::vector<GraphPiece> graph_pieces(const Dag& dag, const std::vector<TaskId>& order, const WaitPlan& waits, GraphScope scope) {
  if (scope == GraphScope::none || scope == GraphScope::full) return {};
  if (scope == GraphScope::attention && dag.software.captured.empty())
    throw std::runtime_error("the framework '" + dag.software.name +
                             "' does not say what it captures of a layer; expected training.framework.captured, or "
                             "--graph=layer, full or none");
  std::vector<GraphPiece> pieces;
  std::vector<GraphPiece> open(dag.ranks.size());
  const auto close = [&](GraphPiece& piece) {
    if (piece.size() > 1) pieces.push_back(piece);
    piece.clear();
  };
  for (const TaskId first : order) {
    for (const TaskId id : dag.unit_of(first)) {
      const Task& task = dag.tasks[id];
      if (task.stream != Stream::compute) continue;
      GraphPiece& piece = open[task.rank];
      if (!is_captured(dag, id, scope)) {
        close(piece);
        continue;
      }
      if (!piece.empty() && (!waits.of(id).empty() || place_of(dag.tasks[piece.back()]) != place_of(task))) close(piece);
      piece.push_back(id);
      if (waits.is_awaited(id)) close(piece);
    }
  }
  for (GraphPiece& piece : open) close(piece);
  return pieces;
}

}  // namespace tandem
