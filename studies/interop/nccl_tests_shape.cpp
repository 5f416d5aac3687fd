#include "studies/interop/nccl_tests_shape.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "studies/interop/cluster_text.h"

namespace tandem::studies {
namespace {

constexpr double per_giga_and_micro = 1e3;  // bytes / us = 1e-3 GB/s
constexpr std::int64_t most_ranks = most_nccl_test_ranks;
constexpr std::int64_t trays_gpus = 72;  // GPUs that NVLink joins in a GB200 or GB300 NVL72
constexpr std::int64_t usual_gpus = 8;   // of a machine

/// Finds out what a run measured, among how many GPUs on how many machines, and whether its columns agree with that.
class RunReader {
 public:
  RunReader(const std::string& file, const ImportRequest& request, ImportResult& result)
      : file_(file), request_(request), result_(result) {}

  ReadRun read(NcclTestRun run) {
    ReadRun found{.run = std::move(run)};
    check_bounds(found.run);
    check_groups(found.run);
    check_speed(found.run);
    found.collective = collective_of(found.run);
    if (!found.collective->op) return found;
    found.members = members_of(found);
    check_factor(found);
    found.machines = machines_of(found);
    return found;
  }

 private:
  const std::string& file_;
  const ImportRequest& request_;
  ImportResult& result_;

  void assume(const std::string& what) { result_.assumed.push_back(file_ + ": " + what); }

  /// What is multiplied below stays within 64 bits.
  static void check_bounds(const NcclTestRun& run) {
    const auto check = [&](const Place& place, std::string_view what, std::int64_t number, std::int64_t least,
                           std::int64_t most) {
      if (number < least || number > most)
        throw InputError(place, fmt::format("has {} out of bounds, expected {} to {}", what, least, most));
    };
    check(run.place, "nThread or nGpus", run.ranks_per_process, 1, most_ranks);
    check(run.place, "ranks", run.stated_ranks, 0, most_ranks);
    check(run.place, "nodes", run.stated_machines, 0, most_ranks);
    for (const auto& [number, rank] : run.ranks) check(run.place, "a number of a rank", number, 0, most_ranks - 1);
    for (const NcclTestRun::Row& row : run.rows) {
      check(row.place, "a size", row.bytes, 0, most_nccl_test_bytes);
      check(row.place, "a count", row.count, 0, most_nccl_test_bytes);
    }
  }

  static void check_groups(const NcclTestRun& run) {
    for (const auto& [number, rank] : run.ranks)
      if (rank.group != 0)
        throw InputError(run.place,
                         fmt::format("rank {} is in group {}: several groups ran at the same time (NCCL_TESTS_SPLIT), and "
                                     "none alone on its links; expected one group",
                                     number, rank.group));
  }

  /// algbw is size / time.
  static void check_speed(const NcclTestRun& run) {
    for (const NcclTestRun::Row& row : run.rows) {
      for (const NcclTestRun::Measured& one : row.measured) {
        if (row.bytes == 0) continue;
        const double bytes = static_cast<double>(row.bytes) / per_giga_and_micro, rounding = 1e-3;
        const double least = bytes / (one.time_us + one.time_slack) - one.algbw_slack;
        const double most = one.time_us > one.time_slack ? bytes / (one.time_us - one.time_slack) + one.algbw_slack
                                                         : std::numeric_limits<double>::infinity();
        if (one.algbw < least * (1 - rounding) || one.algbw > most * (1 + rounding))
          throw InputError(one.place,
                           fmt::format("algbw is {} GB/s, but {} bytes in {} us are {:.2f}; expected columns of nccl-tests",
                                       one.algbw, row.bytes, one.time_us, bytes / one.time_us));
      }
    }
  }

  const NcclTestCollective* collective_of(const NcclTestRun& run) {
    std::string name = run.name;
    if (name.empty()) {
      name = nccl_test_named_in(std::filesystem::path(file_).stem().string());
      const std::vector<const NcclTestCollective*> like = like_all(run);
      const bool named = std::ranges::any_of(like, [&](const NcclTestCollective* one) { return one->name == name; });
      if (like.empty())
        throw InputError(run.place, "redop, root and count are those of no collective of nccl-tests, expected its columns");
      if (like.size() == 1 && !named) name = like.front()->name;
      if (like.size() > 1 && !named) {
        std::vector<std::string> names;
        for (const NcclTestCollective* one : like) names.emplace_back(one->name);
        throw InputError(run.place,
                         "could be of " + joined(names) +
                             ", and nothing says which; expected the program's name in the output, or in that of the file: " +
                             names.front() + ".txt");
      }
      assume(name + (named ? ", by the name of the file" : ", as redop, root and count are of no other"));
    }
    const NcclTestCollective* found = find_nccl_test(name);
    if (found == nullptr) throw InputError(run.place, "is of " + excerpt(name) + ", which Tandem has no collective for");
    for (const NcclTestRun::Row& row : run.rows) {
      if (found->adds == (row.redop != "none") && found->has_root == (row.root >= 0)) continue;
      throw InputError(row.place, fmt::format("redop {} and root {} are not those of {}", excerpt(row.redop), row.root, name));
    }
    return found;
  }

  /// Collectives that every row could be of.
  static std::vector<const NcclTestCollective*> like_all(const NcclTestRun& run) {
    std::vector<const NcclTestCollective*> like;
    bool first = true;
    for (const NcclTestRun::Row& row : run.rows) {
      if (row.bytes == 0) continue;
      const std::vector<const NcclTestCollective*> of_row = nccl_tests_like(row);
      if (std::exchange(first, false)) like = of_row;
      std::erase_if(like, [&](const NcclTestCollective* one) { return std::ranges::find(of_row, one) == of_row.end(); });
    }
    return like;
  }

  /// Returns the ranks that a whole list names, counting those of each listed process; 0 where ranks are missing between.
  static std::int64_t listed_ranks(const NcclTestRun& run) {
    if (run.ranks.empty()) return 0;
    const std::int64_t each = run.ranks_per_process;
    std::int64_t next = 0;
    for (const auto& [number, rank] : run.ranks) {
      if (number / each > (next + each - 1) / each) return 0;
      next = (number / each + 1) * each;
    }
    return next;
  }

  /// Returns the ranks by size / (count * bytes of an element); 0 where that says nothing.
  static std::int64_t counted_ranks(const ReadRun& found) {
    if (!found.collective->counts_one_rank) return 0;
    for (const NcclTestRun::Row& row : found.run.rows)
      if (row.word > 0 && row.count > 0) return row.bytes / (row.count * row.word);
    return 0;
  }

  static bool factor_fits(const ReadRun& found, std::int64_t members, const NcclTestRun::Measured& one) {
    const double factor = found.collective->factor(static_cast<double>(members));
    const double rounding = 1e-6;
    return std::abs(one.busbw - factor * one.algbw) <= factor * one.algbw_slack + one.busbw_slack + rounding * one.busbw;
  }

  static bool factors_fit(const ReadRun& found, std::int64_t members) {
    for (const NcclTestRun::Row& row : found.run.rows)
      for (const NcclTestRun::Measured& one : row.measured)
        if (row.bytes > 0 && !factor_fits(found, members, one)) return false;
    return true;
  }

  std::int64_t members_of(const ReadRun& found) {
    if (request_.gpus != 0) return request_.gpus;
    if (const std::int64_t stated = found.run.stated_ranks; stated > 0)
      return factors_fit(found, stated) ? stated : stated * found.run.ranks_per_process;
    if (const std::int64_t counted = counted_ranks(found); counted > 0) return counted;
    const std::int64_t listed = listed_ranks(found.run);
    if (listed > 0 && (listed > 1 || found.collective->factor(2) == 1)) return listed;
    const std::int64_t at_least = found.run.ranks.empty() ? 2 : std::max<std::int64_t>(2, found.run.ranks.rbegin()->first + 1);
    std::vector<std::int64_t> possible;
    const bool tells = found.collective->factor(2) != 1 || found.collective->adds;
    for (std::int64_t n = at_least; tells && n <= most_ranks && possible.size() < 2; ++n)
      if (factors_fit(found, n)) possible.push_back(n);
    if (found.collective->factor(2) == found.collective->factor(3)) possible.clear();
    if (possible.size() == 1) {
      assume(fmt::format("{} GPUs, as busbw / algbw is that of no other number", possible.front()));
      return possible.front();
    }
    if (tells && possible.empty()) return at_least;  // which check_factor refuses
    throw InputError(found.run.place,
                     "has no list of all ranks, and its columns do not tell how many there were; expected --gpus N");
  }

  static void check_factor(const ReadRun& found) {
    for (const NcclTestRun::Row& row : found.run.rows) {
      for (const NcclTestRun::Measured& one : row.measured) {
        if (row.bytes == 0 || factor_fits(found, found.members, one)) continue;
        throw InputError(
            one.place,
            fmt::format("busbw is {} GB/s, but that of {} among {} ranks is {:.4f} times the algbw of {}, {:.2f}", one.busbw,
                        found.collective->name, found.members, found.collective->factor(static_cast<double>(found.members)),
                        one.algbw, one.algbw * found.collective->factor(static_cast<double>(found.members))));
      }
    }
  }

  /// Returns the host of each rank, where the list says it of all: ranks of a listed process are on its host, and so are those
  /// between two of one host.
  static std::vector<std::string> host_of_ranks(const ReadRun& found) {
    std::vector<std::string> hosts(static_cast<std::size_t>(found.members));
    const std::int64_t each = found.run.ranks_per_process;
    std::int64_t last = -1;
    for (const auto& [number, rank] : found.run.ranks) {
      const std::int64_t begin = number / each * each, end = std::min(begin + each, found.members);
      for (std::int64_t r = begin; r < end; ++r) hosts[static_cast<std::size_t>(r)] = rank.host;
      for (std::int64_t r = last + 1; last >= 0 && r < begin && hosts[static_cast<std::size_t>(last)] == rank.host; ++r)
        hosts[static_cast<std::size_t>(r)] = rank.host;
      last = end - 1;
    }
    return hosts;
  }

  std::int64_t machines_of(const ReadRun& found) {
    const std::vector<std::string> hosts = host_of_ranks(found);
    const bool known = std::ranges::none_of(hosts, [](const std::string& host) { return host.empty(); });
    if (found.run.stated_machines > 0 && request_.cluster.empty()) return found.run.stated_machines;
    const std::int64_t distinct = std::ssize(std::set(hosts.begin(), hosts.end()));
    if (!request_.cluster.empty()) {
      ImportResult unused;
      const ClusterBase base = cluster_base(request_, unused);
      if (spans_hosts(base) || !known) return (found.members + base.spec.gpus_per_node - 1) / base.spec.gpus_per_node;
      return distinct;
    }
    const bool is_rack =
        names_rack(gpu_of(found.run)) || (!known && names_rack(std::filesystem::path(file_).filename().string()));
    if (is_rack) {
      const std::int64_t racks = (found.members + trays_gpus - 1) / trays_gpus;
      assume(fmt::format("{} GPUs on {} NVLink domain{} of 72, as those of an NVL72 (--cluster)", found.members, racks,
                         racks == 1 ? "" : "s"));
      return racks;
    }
    if (known) return distinct;
    const std::int64_t machines = (found.members + usual_gpus - 1) / usual_gpus;
    assume(fmt::format("{} GPUs on {} machine{} of up to 8, as the hosts of the ranks are not listed (--cluster)", found.members,
                       machines, machines == 1 ? "" : "s"));
    return machines;
  }

  /// Whether a GPU's name, or that of a file, is of a rack in which NVLink joins 72.
  static bool names_rack(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return std::ranges::any_of(std::array{"GB200", "GB300", "NVL72"},
                               [&](const char* name) { return text.find(name) != std::string::npos; });
  }

  static std::string gpu_of(const NcclTestRun& run) { return run.ranks.empty() ? "" : run.ranks.begin()->second.gpu; }
};

}  // namespace

ReadRun shape_of_run(NcclTestRun run, const std::string& file, const ImportRequest& request, ImportResult& result) {
  return RunReader(file, request, result).read(std::move(run));
}

}  // namespace tandem::studies
