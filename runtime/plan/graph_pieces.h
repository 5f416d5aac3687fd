#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/plan/waits.h"

namespace tandem {

/// What of a step a GPU is given as CUDA graphs. The rest is put into its streams kernel by kernel.
enum class GraphScope : std::uint8_t {
  none,
  attention,  ///< what the framework captures of a layer (`Software::captured`)
  layer,      ///< every layer, and each of its passes
  full        ///< the whole step as one graph, collectives included
};
constexpr std::string_view name_of(GraphScope scope) {
  constexpr std::string_view names[] = {"none", "attention", "layer", "full"};
  return names[static_cast<std::size_t>(scope)];
}
std::optional<GraphScope> graph_scope_named(std::string_view name);

/// Returns what the simulation takes to be captured: all where issuing kernels costs nothing, else what `training.cuda_graph`
/// says.
GraphScope simulated_scope(const Software& software);

/// Kernels of one rank that follow each other in its compute stream and become one graph.
using GraphPiece = std::vector<TaskId>;

/// Returns the graphs of the scopes `attention` and `layer`, none otherwise. A piece
///
/// - has kernels of one layer, micro-batch and pass, and at least two of them;
/// - has no collective: those stay outside, in the order in which all ranks issue them;
/// - begins where its stream waits for another, and ends where another waits for it, so that events are waited for and
///   recorded outside of graphs.
///
/// `order` as issue_order() gives it. With `attention`, throws std::runtime_error where the framework does not say what it
/// captures.
std::vector<GraphPiece> graph_pieces(const Dag& dag, const std::vector<TaskId>& order, const WaitPlan& waits, GraphScope scope);

}  // namespace tandem
