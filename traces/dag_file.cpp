#include "traces/dag_file.h"

#include "runtime/dag/check_dag.h"
#include "runtime/dag/distinct_kernels.h"
#include "traces/own_file.h"

namespace tandem::traces {
namespace {

constexpr Format dag_format{.name = "tandem-dag", .version = 20, .written_by = "tandem lower --out"};

static_assert(names_every_field<Software>() && names_every_field<ExtraWork>() && names_every_field<IssueCost>());
static_assert(names_every_field<StepInfo>() && names_every_field<Device>() && names_every_field<KernelEfficiency>());
static_assert(names_every_field<GemmTile>() && names_every_field<GemmEfficiency>());
static_assert(names_every_field<AttentionPass>() && names_every_field<AttentionEfficiency>());
static_assert(names_every_field<MeasuredKernel>() && names_every_field<TimedKernel>() && names_every_field<OperandType>());
static_assert(names_every_field<MeasuredCollective>() && names_every_field<Timing>());
static_assert(names_every_field<Rank>() && names_every_field<Link>() && names_every_field<Communicator>());
static_assert(names_every_field<Layout>() && names_every_field<Paths>() && names_every_field<Hop>());
static_assert(names_every_field<Buffer>() && names_every_field<ParameterShard>() && names_every_field<InputShard>());
static_assert(names_every_field<Task, 1>() && names_every_field<Group>() &&
              names_every_field<Dag, 2>());  // the graph, the kernels

template <std::size_t... I>
constexpr bool names_every_attribute(std::index_sequence<I...>) {
  return (names_every_field<std::variant_alternative_t<I, OpAttributes>>() && ...);
}
static_assert(names_every_attribute(std::make_index_sequence<std::variant_size_v<OpAttributes>>()));

Edges edges_of(const Dag& dag) {
  Edges edges;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const std::span<const TaskId> successors = dag.graph.successors(id);
    edges.successors.push_back(static_cast<std::uint32_t>(successors.size()));
    edges.to.insert(edges.to.end(), successors.begin(), successors.end());
  }
  return edges;
}

TaskGraph graph_of(const Edges& edges, std::size_t tasks) {
  if (edges.successors.size() != tasks) throw CorruptTable("not every task has its successors");
  std::vector<TaskGraph::Edge> pairs;
  for (TaskId id = 0; id < tasks; ++id) {
    for (std::uint32_t left = edges.successors[id]; left > 0; --left) {
      if (pairs.size() == edges.to.size()) throw CorruptTable("an edge is missing");
      pairs.emplace_back(id, edges.to[pairs.size()]);
      if (pairs.back().second >= tasks) throw CorruptTable("an edge leads to no task");
    }
  }
  if (pairs.size() != edges.to.size()) throw CorruptTable("an edge is left over");
  return {tasks, pairs};
}

}  // namespace

bool is_dag_file(const std::string& path) { return begins_as(dag_format, path); }

std::string to_bytes(const Dag& dag) {
  file::Content content;
  write_table(dag, *content.add_tables());
  write_table(edges_of(dag), *content.add_tables());
  return seal(dag_format, content);
}

Dag read_dag(const std::string& path) {
  const file::Content content = unseal(dag_format, path).content;
  try {
    if (content.tables_size() != 2) throw CorruptTable("it has not two tables");
    Dag dag;
    Edges edges;
    read_table(content.tables(0), dag);
    read_table(content.tables(1), edges);
    dag.graph = graph_of(edges, dag.tasks.size());
    if (const std::string flaw = first_flaw(dag); !flaw.empty()) throw CorruptTable(flaw);
    number_kernels(dag);
    return dag;
  } catch (const CorruptTable& flaw) {
    throw corrupt(dag_format, path, flaw.what());
  }
}

}  // namespace tandem::traces
