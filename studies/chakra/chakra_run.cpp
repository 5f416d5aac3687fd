#include "studies/chakra/chakra_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/si.h"
#include "sim/kernel_cost.h"
#include "studies/chakra/process_groups.h"
#include "studies/chakra/rank_nodes.h"

namespace tandem::studies {
namespace {

constexpr Bytes most_of_latency = 4096;  ///< bytes of an exchange that takes no bandwidth from others

/// One rank's trace, read.
struct RankRead {
  std::uint32_t rank = 0;
  const ChakraTrace* trace = nullptr;
  NodeOrder order;
  std::vector<std::optional<ExchangeNode>> exchanges = {};  ///< by place in the order

  const chakra::Node& node(std::size_t place) const { return trace->nodes[order.nodes[place]]; }
};

[[noreturn]] void refuse_at(const RankRead& rank, std::size_t place, const std::string& sentence) {
  throw InputError({rank.trace->file, 0, 0}, name_of_node(rank.node(place)) + " " + sentence);
}

std::optional<Axis> axis_named(const std::string& name) {
  const auto found = std::ranges::find(axis_names, name);
  return found == axis_names.end() ? std::nullopt : std::optional(static_cast<Axis>(found - axis_names.begin()));
}

Phase phase_of(const chakra::Node& node) {
  const std::string name = text_of(node, node_phase).value_or("");
  for (const Phase phase : {Phase::backward_input, Phase::backward_weight, Phase::recompute, Phase::optimizer})
    if (name == name_of(phase)) return phase;
  return Phase::forward;
}

/// How a group's collectives lie on links. What all of them are decides.
struct GroupUse {
  bool all_reduces = false;
  Axis axis = Axis::none;
  Bytes most = 0;
  std::string description;
};

using GroupKey = std::tuple<std::string, std::vector<std::uint32_t>, bool>;  ///< name, members, whether of all-to-alls
using PairKey = std::pair<std::uint32_t, std::uint32_t>;

class RunReader {
 public:
  RunReader(const ChakraFiles& files, std::int64_t gpus, const ClusterSpec& cluster)
      : files_(files), cluster_(cluster), process_groups_(files, gpus) {
    read_.run.name = files.name;
  }

  ChakraRun read() {
    for (const auto& [rank, trace] : files_.ranks) {
      RankRead& one = ranks_.emplace_back(RankRead{.rank = rank, .trace = &trace, .order = order_of(trace)});
      read_.nodes += trace.nodes.size();
      for (std::size_t place = 0; place < one.order.nodes.size(); ++place)
        one.exchanges.push_back(exchange_of(trace, one.node(place)));
      tell_dropped(one);
    }
    check_ranks();
    for (RankRead& rank : ranks_) look_up_groups(rank);
    for (const RankRead& rank : ranks_) add_rank(rank);
    add_missing_ranks();
    check_calls();
    tell_times();
    return std::move(read_);
  }

 private:
  /// What the members of a call must agree on, and who came.
  struct Call {
    OpKind op = OpKind::all_reduce;
    Bytes bytes = 0;
    std::size_t members = 0;
    const RankRead* first = nullptr;
    std::size_t place = 0;
  };

  const ChakraFiles& files_;
  const ClusterSpec& cluster_;
  ProcessGroups process_groups_;
  ChakraRun read_;
  std::vector<RankRead> ranks_;
  std::map<GroupKey, GroupUse> uses_;
  std::map<GroupKey, std::uint32_t> group_ids_;
  std::map<PairKey, std::uint32_t> pair_ids_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Call> calls_;  ///< by group and call
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  std::multimap<std::size_t, std::uint32_t> programs_by_size_;
  std::size_t by_roofline_ = 0, by_link_ = 0, without_link_ = 0;

  void tell_dropped(const RankRead& rank) {
    if (rank.order.circular)
      read_.warnings.push_back(rank.trace->file + " has control dependencies that lead in a circle; all were left out");
    else if (rank.order.dropped > 0)
      read_.warnings.push_back(std::to_string(rank.order.dropped) + " control dependencies in " + rank.trace->file +
                               " are on nodes that it does not hold, or on the node itself, and were left out");
  }

  /// Whether all that a rank exchanges is among all ranks.
  bool exchanges_with_all_alone(const RankRead& rank) const {
    for (std::size_t place = 0; place < rank.exchanges.size(); ++place) {
      const auto& exchange = rank.exchanges[place];
      if (!exchange) continue;
      if (exchange->op == OpKind::send || exchange->op == OpKind::receive) return false;
      if (process_groups_.members(*rank.trace, rank.rank, rank.node(place), exchange->group).size() != process_groups_.world())
        return false;
    }
    return true;
  }

  void check_ranks() const {
    const RankRead& first = ranks_.front();
    const bool exchanges = std::ranges::any_of(first.exchanges, [](const auto& exchange) { return exchange.has_value(); });
    if (exchanges && !process_groups_.is_world_told())
      throw InputError({first.trace->file, 0, 0},
                       "is the trace of one rank, and does not tell of how many ranks its collectives are; expected --gpus N, or "
                       "the traces of all");
    if (ranks_.size() == process_groups_.world() ||
        std::ranges::all_of(ranks_, [&](const RankRead& rank) { return exchanges_with_all_alone(rank); }))
      return;
    std::uint32_t missing = 0;
    while (files_.ranks.contains(missing)) ++missing;
    throw InputError({first.trace->file, 0, 0},
                     "is of a run on " + std::to_string(process_groups_.world()) + " ranks, of which " +
                         std::to_string(process_groups_.world() - ranks_.size()) + " have no trace, such as rank " +
                         std::to_string(missing) + "; expected one of each, as not all exchange with all");
  }

  GroupKey key_of(const RankRead& rank, std::size_t place) const {
    const ExchangeNode& exchange = *rank.exchanges[place];
    return {exchange.group, process_groups_.members(*rank.trace, rank.rank, rank.node(place), exchange.group),
            exchange.op == OpKind::all_to_all};
  }

  /// Whom a send or receive is between: told by the node, or by a group of two.
  PairKey pair_of(const RankRead& rank, std::size_t place) const {
    const ExchangeNode& exchange = *rank.exchanges[place];
    const bool sends = exchange.op == OpKind::send;
    auto peer = sends ? exchange.to : exchange.from;
    const auto self = sends ? exchange.from : exchange.to;
    if (self && *self != rank.rank)
      refuse_at(
          rank, place,
          "is of rank " + std::to_string(*self) + ", in the trace of rank " + std::to_string(rank.rank) + "; expected its own");
    if (!peer && !exchange.group.empty()) {
      const auto& members = process_groups_.members(*rank.trace, rank.rank, rank.node(place), exchange.group);
      if (members.size() == 2) peer = members[0] == rank.rank ? members[1] : members[0];
    }
    if (!peer)
      refuse_at(rank, place,
                std::string("does not tell where ") + (sends ? "to it sends (`comm_dst`)" : "from it receives (`comm_src`)") +
                    "; expected a rank, or a process group of two");
    if (*peer >= process_groups_.world() || *peer == rank.rank)
      refuse_at(rank, place,
                "is between rank " + std::to_string(rank.rank) + " and rank " + std::to_string(*peer) +
                    "; expected another one of " + std::to_string(process_groups_.world()));
    return sends ? PairKey{rank.rank, *peer} : PairKey{*peer, rank.rank};
  }

  static bool is_transfer(const ExchangeNode& exchange) { return exchange.op == OpKind::send || exchange.op == OpKind::receive; }

  void look_up_groups(const RankRead& rank) {
    for (std::size_t place = 0; place < rank.exchanges.size(); ++place) {
      if (!rank.exchanges[place] || is_transfer(*rank.exchanges[place])) continue;
      GroupUse& use = uses_[key_of(rank, place)];
      const ExchangeNode& exchange = *rank.exchanges[place];
      use.all_reduces = use.all_reduces || exchange.op == OpKind::all_reduce;
      use.most = std::max(use.most, exchange.bytes);
      if (const auto axis = axis_named(text_of(rank.node(place), group_axis).value_or(""))) use.axis = *axis;
      if (use.description.empty()) use.description = text_of(rank.node(place), group_description).value_or("");
    }
  }

  std::uint32_t group_id(const GroupKey& key) {
    const auto [entry, is_new] = group_ids_.try_emplace(key, static_cast<std::uint32_t>(read_.run.groups.size()));
    if (!is_new) return entry->second;
    const auto& [name, members, is_all_to_all] = key;
    const GroupUse& use = uses_.at(key);
    using Way = RecordedGroup::Way;
    // NCCL has a choice where something is all-reduced; what tensor parallelism gathers and scatters, it can leave to switches.
    const bool has_choice = use.all_reduces || use.axis == Axis::tp;
    const Way way = is_all_to_all                 ? Way::all_to_all
                    : use.most <= most_of_latency ? Way::latency
                    : has_choice                  ? Way::choice
                                                  : Way::ring;
    const std::string called = !use.description.empty() ? use.description : name.empty() ? "all ranks" : "process group " + name;
    read_.run.groups.push_back({called, use.axis, way, members});
    return entry->second;
  }

  std::uint32_t pair_id(const PairKey& key, const chakra::Node& node) {
    const auto [entry, is_new] = pair_ids_.try_emplace(key, static_cast<std::uint32_t>(read_.run.groups.size()));
    if (is_new)
      read_.run.groups.push_back({text_of(node, group_description).value_or("pair"),
                                  axis_named(text_of(node, group_axis).value_or("")).value_or(Axis::none),
                                  RecordedGroup::Way::pair,
                                  {key.first, key.second}});
    return entry->second;
  }

  std::uint32_t name_id(const std::string& name) {
    const auto [entry, is_new] = name_ids_.try_emplace(name, static_cast<std::uint32_t>(read_.run.names.size()));
    if (is_new) read_.run.names.push_back(name);
    return entry->second;
  }

  /// Which call of its pair each send and receive is: by its tag, then by its order. Both ends count so.
  std::map<std::size_t, std::uint32_t> transfer_calls(const RankRead& rank) const {
    std::map<std::pair<PairKey, bool>, std::vector<std::pair<std::int64_t, std::size_t>>> by_pair;
    for (std::size_t place = 0; place < rank.exchanges.size(); ++place)
      if (const auto& exchange = rank.exchanges[place]; exchange && is_transfer(*exchange))
        by_pair[{pair_of(rank, place), exchange->op == OpKind::send}].emplace_back(exchange->tag, place);
    std::map<std::size_t, std::uint32_t> calls;
    for (auto& [pair, places] : by_pair) {
      std::ranges::sort(places);
      for (std::uint32_t call = 0; call < places.size(); ++call) calls[places[call].second] = call;
    }
    return calls;
  }

  void add_rank(const RankRead& rank) {
    std::vector<RecordedTask> program;
    RecordedRank recorded;
    std::map<std::uint32_t, std::uint32_t> slots, calls;  // by group
    const auto transfers = transfer_calls(rank);
    for (std::size_t place = 0; place < rank.order.nodes.size(); ++place) {
      RecordedTask& task = program.emplace_back(task_of(rank, place));
      if (task.kind != RecordedTask::Kind::exchange) continue;
      const ExchangeNode& exchange = *rank.exchanges[place];
      const bool transfers_it = is_transfer(exchange);
      const std::uint32_t group = transfers_it ? pair_id(pair_of(rank, place), rank.node(place)) : group_id(key_of(rank, place));
      const auto [slot, is_new] = slots.try_emplace(group, static_cast<std::uint32_t>(recorded.groups.size()));
      if (is_new) recorded.groups.push_back(group);
      task.slot = slot->second;
      task.call = transfers_it ? transfers.at(place) : calls[group]++;
      task.bytes = bytes_of(exchange, read_.run.groups[group].members.size());
      join(group, task, rank, place);
    }
    recorded.program = program_id(std::move(program));
    if (read_.run.ranks.size() <= rank.rank) read_.run.ranks.resize(rank.rank + std::size_t{1});
    read_.run.ranks[rank.rank] = std::move(recorded);
  }

  /// A rank's part of what is gathered, everything it scatters.
  static Bytes bytes_of(const ExchangeNode& exchange, std::size_t members) {
    const bool is_part = exchange.op == OpKind::all_gather || exchange.op == OpKind::gather;
    return is_part ? exchange.bytes * static_cast<Bytes>(members) : exchange.bytes;
  }

  RecordedTask task_of(const RankRead& rank, std::size_t place) {
    using Kind = RecordedTask::Kind;
    const chakra::Node& node = rank.node(place);
    RecordedTask task{.name = name_id(node.name()), .phase = phase_of(node), .after = rank.order.after[place]};
    if (const auto& exchange = rank.exchanges[place]) {
      const bool alone = !is_transfer(*exchange) && std::get<1>(key_of(rank, place)).size() == 1;
      if (alone) return task;  // nothing moves
      task.kind = Kind::exchange;
      task.op = exchange->op;
      task.stream = integer_of(node, node_stream).value_or(-1);
      return task;
    }
    const auto type = static_cast<ChakraNodeType>(node.type());
    const bool is_on_host = integer_of(node, "is_cpu_op").value_or(0) != 0;
    task.kind = type == ChakraNodeType::memory_load             ? Kind::from_host
                : type == ChakraNodeType::memory_store          ? Kind::to_host
                : type != ChakraNodeType::compute || is_on_host ? Kind::on_host
                                                                : Kind::kernel;
    task.time = time_of(node, task.kind);
    return task;
  }

  Seconds time_of(const chakra::Node& node, RecordedTask::Kind kind) {
    if (const auto exact = number_of(node, exact_duration)) return *exact / giga;
    if (node.duration_micros() > 0) return static_cast<double>(node.duration_micros()) * micro;
    const double bytes = number_of(node, "tensor_size").value_or(0), operations = number_of(node, "num_ops").value_or(0);
    if (kind == RecordedTask::Kind::kernel && (bytes > 0 || operations > 0)) {
      ++by_roofline_;
      const Roofline roofline = roofline_of(cluster_.gpu, OpClass::gemm, DType::bf16);
      return std::max(roofline.arithmetic > 0 ? operations / roofline.arithmetic : 0, bytes / roofline.memory);
    }
    const bool copies = kind == RecordedTask::Kind::from_host || kind == RecordedTask::Kind::to_host;
    if (!copies || !(bytes > 0)) return 0;
    if (!(cluster_.host.link_GBps > 0)) {
      ++without_link_;
      return 0;
    }
    ++by_link_;
    return cluster_.host.link_latency_us * micro + bytes / (cluster_.host.link_GBps * giga);
  }

  void join(std::uint32_t group, const RecordedTask& task, const RankRead& rank, std::size_t place) {
    const auto [entry, is_first] = calls_.try_emplace({group, task.call});
    Call& call = entry->second;
    if (is_first) call = {.op = task.op, .bytes = task.bytes, .first = &rank, .place = place};
    ++call.members;
    const bool is_pair = read_.run.groups[group].way == RecordedGroup::Way::pair;
    const std::int64_t tag = rank.exchanges[place]->tag, other_tag = call.first->exchanges[call.place]->tag;
    if (is_pair && tag != other_tag)
      refuse_at(rank, place,
                "has tag " + std::to_string(tag) + " where " + name_of_node(call.first->node(call.place)) + " of rank " +
                    std::to_string(call.first->rank) + " has " + std::to_string(other_tag) +
                    "; expected a send and a receive of each tag");
    if ((!is_pair && call.op != task.op) || call.bytes != task.bytes)
      refuse_at(rank, place,
                "meets " + name_of_node(call.first->node(call.place)) + " of rank " + std::to_string(call.first->rank) +
                    ", which is another collective or of another size; expected the same from all members, in one order");
  }

  std::uint32_t program_id(std::vector<RecordedTask> program) {
    const auto [begin, end] = programs_by_size_.equal_range(program.size());
    for (auto known = begin; known != end; ++known)
      if (std::ranges::equal(read_.run.programs[known->second], program, &RecordedTask::does_the_same)) return known->second;
    const auto id = static_cast<std::uint32_t>(read_.run.programs.size());
    programs_by_size_.emplace(program.size(), id);
    read_.run.programs.push_back(std::move(program));
    return id;
  }

  void add_missing_ranks() {
    const std::uint32_t world = process_groups_.world();
    if (ranks_.size() == world) return;
    const RecordedRank& known = read_.run.ranks[ranks_.front().rank];
    for (const RankRead& rank : ranks_)
      if (read_.run.ranks[rank.rank].program != known.program)
        throw InputError({rank.trace->file, 0, 0}, "is not like " + ranks_.front().trace->file + ", and " +
                                                       std::to_string(world - ranks_.size()) +
                                                       " ranks have no trace; expected one of each");
    RecordedRank other = known;
    read_.run.ranks.resize(world, other);
    for (std::uint32_t rank = 0; rank < world; ++rank)
      if (!files_.ranks.contains(rank)) read_.run.ranks[rank] = other;
    for (auto& [key, call] : calls_) call.members = world;
    read_.assumed.push_back(std::to_string(world - ranks_.size()) + " of " + std::to_string(world) +
                            " ranks have no trace and were taken for the same as rank " + std::to_string(ranks_.front().rank));
  }

  void check_calls() const {
    for (const auto& [key, call] : calls_) {
      const RecordedGroup& group = read_.run.groups[key.first];
      if (call.members == group.members.size()) continue;
      if (group.way == RecordedGroup::Way::pair)
        refuse_at(*call.first, call.place,
                  "goes from rank " + std::to_string(group.members[0]) + " to rank " + std::to_string(group.members[1]) +
                      " and has no other end; expected a send and a receive of one tag");
      refuse_at(*call.first, call.place,
                "is joined by " + std::to_string(call.members) + " of the " + std::to_string(group.members.size()) +
                    " members of its group; expected all");
    }
  }

  void tell_times() {
    if (by_roofline_ > 0)
      read_.assumed.push_back(std::to_string(by_roofline_) +
                              " compute nodes tell operations and bytes and no duration: they take what the roofline of " +
                              cluster_.gpu.name + " says, products in bf16");
    if (by_link_ > 0)
      read_.assumed.push_back(
          std::to_string(by_link_) +
          " loads and stores tell bytes and no duration: they take what the cluster's link to the host lets them");
    if (without_link_ > 0)
      read_.warnings.push_back(std::to_string(without_link_) +
                               " loads and stores take no time: they tell none, and the cluster states no link to the host");
  }
};

}  // namespace

ChakraRun recorded_run_of(const ChakraFiles& files, std::int64_t gpus, const ClusterSpec& cluster) {
  return RunReader(files, gpus, cluster).read();
}

}  // namespace tandem::studies
