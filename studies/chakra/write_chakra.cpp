#include "studies/chakra/write_chakra.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "runtime/base/input_error.h"
#include "scenarios/lowering/lower.h"
#include "studies/chakra/rank_writer.h"
#include "studies/step/simulated_step.h"
#include "studies/step/simulation_limits.h"

namespace tandem::studies {
namespace {

/// When the tasks of all ranks ran, by the fold's: the tasks of a rank are those of its representative, one by one.
struct AllTimes {
  std::vector<Seconds> start, end;
};

AllTimes times_of_all(const Dag& all, const SimulatedStep& folded) {
  std::vector<std::vector<TaskId>> of_class(folded.dag.ranks.size());
  for (TaskId id = 0; id < folded.dag.tasks.size(); ++id) of_class[folded.dag.tasks[id].rank].push_back(id);
  std::vector<std::size_t> next(all.ranks.size(), 0);
  AllTimes times{std::vector<Seconds>(all.tasks.size()), std::vector<Seconds>(all.tasks.size())};
  for (TaskId id = 0; id < all.tasks.size(); ++id) {
    const RankIndex rank = all.tasks[id].rank;
    const std::vector<TaskId>& alike = of_class[folded.class_of[all.ranks[rank].world_rank]];
    const TaskId same = alike.at(next[rank]++);
    if (folded.dag.tasks[same].op != all.tasks[id].op) throw std::logic_error("ranks of a class run different tasks");
    times.start[id] = folded.timeline.start[same];
    times.end[id] = folded.timeline.end[same];
  }
  return times;
}

/// The world without ranks that are not asked for; its communicators keep all their members.
World only(const World& world, const std::vector<std::uint32_t>& ranks) {
  World some = world;
  some.ranks.clear();
  some.communicator_of.clear();
  for (const std::uint32_t rank : ranks) {
    some.ranks.push_back(world.ranks[rank]);
    some.communicator_of.push_back(world.communicator_of[rank]);
  }
  return some;
}

/// Each task takes memory as it is lowered, and a node of a file.
void refuse_too_many_tasks(const Scenario& scenario, const SimulatedStep& folded, const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t most = 20'000'000;
  std::vector<std::size_t> of_class(folded.dag.ranks.size(), 0);
  for (const Task& task : folded.dag.tasks) ++of_class[task.rank];
  std::size_t tasks = 0;
  for (const std::uint32_t rank : ranks) tasks += of_class[folded.class_of[rank]];
  if (tasks > most)
    throw InputError({scenario.name, 0, 0}, "has " + std::to_string(tasks) + " tasks on " + std::to_string(ranks.size()) +
                                                " ranks; expected at most " + std::to_string(most) + ", as of fewer --ranks");
}

/// {"1": [0, 1], ...}, one group a line.
void write_groups(const Dag& dag, const ChakraNumbers& numbers, const std::string& path) {
  OutputFile out(path);
  std::string text;
  for (CommunicatorId id = 0; id < dag.communicators.size(); ++id) {
    if (numbers.group_names[id] == 0) continue;
    text += (text.empty() ? "{\n  \"" : ",\n  \"") + std::to_string(numbers.group_names[id]) +
            "\": " + nlohmann::json(dag.communicators[id].members).dump();
  }
  out.write(text.empty() ? "{}\n" : text + "\n}\n");
  out.commit();
}

std::vector<std::string> notes_on(const Dag& dag) {
  constexpr std::array simulated_by_astra{OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                                          OpKind::all_to_all, OpKind::send,       OpKind::receive,
                                          OpKind::copy};
  std::vector<std::string> notes, others;
  for (const Task& task : dag.tasks) {
    if (!is_communication(task.op) || std::ranges::find(simulated_by_astra, task.op) != simulated_by_astra.end()) continue;
    const std::string name(operation(task.op).name);
    if (std::ranges::find(others, name) == others.end()) others.push_back(name);
  }
  for (const std::string& name : others)
    notes.push_back(name + ": the schema has it, and ASTRA-sim's Workload.cc " +
                    (name == "broadcast" ? "replays its duration" : "refuses it"));
  if (dag.software.waits_for_dispatch)
    notes.emplace_back("the CPU's wait for the experts' tokens: its nodes go on as if it did not wait");
  return notes;
}

void make_folder_of_traces(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw std::runtime_error("cannot write '" + folder + "': " + error.message());
}

}  // namespace

ChakraWritten write_chakra(const Scenario& scenario, std::span<const std::uint32_t> ranks, const std::string& folder) {
  refuse_beyond_limits(scenario, false, Collectives::fluid);
  make_folder_of_traces(folder);
  const SimulatedStep folded = simulate_step(scenario, true);
  std::vector<std::uint32_t> asked(ranks.begin(), ranks.end());
  if (asked.empty()) {
    asked.resize(folded.class_of.size());
    std::iota(asked.begin(), asked.end(), 0);
  }
  refuse_too_many_tasks(scenario, folded, asked);
  const Dag dag = lower_within_limits(scenario, only(make_world(scenario, false), asked));
  const AllTimes times = times_of_all(dag, folded);
  RankWriter writer(dag, times.start, times.end);
  ChakraWritten written{.ranks = asked.size(), .nodes = 0, .notes = notes_on(dag)};
  const std::filesystem::path path(folder);
  for (RankIndex rank = 0; rank < asked.size(); ++rank) {
    ChakraWriter out(path / ("step." + std::to_string(asked[rank]) + ".et"));
    written.nodes += writer.write(rank, out);
    out.commit();
  }
  write_groups(dag, writer.numbers(), path / "comm_group.json");
  return written;
}

}  // namespace tandem::studies
