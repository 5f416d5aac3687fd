#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/ops/operation.h"

namespace tandem::studies {

/// What one program of nccl-tests or rccl-tests printed, as text or as JSON (-J).
struct NcclTestRun {
  /// Times of one size, out of place or in place. A bandwidth is printed with so many decimals that it is off by up to `*_slack`.
  struct Measured {
    double time_us = 0, time_slack = 0;
    double algbw = 0, algbw_slack = 0;  ///< GB/s: size / time
    double busbw = 0, busbw_slack = 0;  ///< GB/s: algbw times the factor of the collective
    Place place;
  };
  struct Row {
    Bytes bytes = 0;         ///< `size`: the whole vector, as `Group::bytes` counts
    std::int64_t count = 0;  ///< elements; of all-gather and its kind, those of one rank
    std::int64_t word = 0;   ///< bytes of an element; 0 for a type that is not known
    std::string redop;       ///< "none" for what adds nothing up
    std::int64_t root = -1;  ///< -1: none
    std::vector<Measured> measured = {};
    Place place;
  };
  struct Rank {
    std::int64_t group = 0;
    std::string host, gpu;
  };
  std::string name = {};                    ///< of the program without _perf: "all_reduce"; empty where nothing says it
  std::map<std::int64_t, Rank> ranks = {};  ///< by number, those that are listed
  std::int64_t ranks_per_process = 1;       ///< threads times GPUs of a thread; 0: out of bounds
  std::int64_t stated_ranks = 0, stated_machines = 0;  ///< 0: not stated; rccl-tests' JSON does
  std::vector<Row> rows = {};
  std::string libraries = {}, date = {};  ///< as printed
  Place place;
};

inline constexpr std::int64_t most_nccl_test_ranks = 65'536;
inline constexpr Bytes most_nccl_test_bytes = Bytes{1} << 50;  ///< of a row

/// Returns the ranks of a process with so many threads of so many GPUs each; 0 where these are out of bounds.
constexpr std::int64_t ranks_of_process(std::int64_t threads, std::int64_t gpus) {
  const auto possible = [](std::int64_t number) { return number >= 1 && number <= most_nccl_test_ranks; };
  return possible(threads) && possible(gpus) ? threads * gpus : 0;
}

/// Reads what was printed, by one program or by several one after the other. Lines of other programs are passed over, and what a
/// launcher puts before each line. Throws InputError for wrong values that were counted, and for a time that is no number.
std::vector<NcclTestRun> parse_nccl_tests_text(const std::string& text, const std::string& file);

/// Reads what -J of nccl-tests wrote (src/util.cu, versions 1 to 3), or the list of records of rccl-tests (-Z json). Throws
/// InputError.
std::vector<NcclTestRun> parse_nccl_tests_json(const std::string& text, const std::string& file);

/// A collective of nccl-tests (doc/PERFORMANCE.md, and the *GetBw and *GetCollByteCount functions of its sources).
struct NcclTestCollective {
  std::string_view name;
  std::optional<OpKind> op;  ///< none: Tandem has no such collective
  bool adds = false;         ///< has a redop
  bool has_root = false;
  bool counts_one_rank = false;  ///< `count` is a rank's part of `size`
  /// Returns busbw / algbw among n ranks.
  double (*factor)(double n);
};

const NcclTestCollective* find_nccl_test(std::string_view name);
/// Returns those that a row could be of, by its redop, root and count.
std::vector<const NcclTestCollective*> nccl_tests_like(const NcclTestRun::Row& row);
/// Returns the name of the collective in a text such as "/opt/all_reduce_perf" or "gcp-allgather.txt"; empty where there is none.
std::string nccl_test_named_in(std::string_view text);

}  // namespace tandem::studies
