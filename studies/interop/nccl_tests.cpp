#include "studies/interop/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tandem::studies {
namespace {

double twice_but_own(double n) { return 2 * (n - 1) / n; }
double all_but_own(double n) { return (n - 1) / n; }
double whole(double /*n*/) { return 1; }

// Longer names before those that they hold.
constexpr std::array<NcclTestCollective, 10> nccl_test_table{{
    {"all_reduce", OpKind::all_reduce, true, false, false, twice_but_own},
    {"reduce_scatter", OpKind::reduce_scatter, true, false, true, all_but_own},
    {"all_gather", OpKind::all_gather, false, false, true, all_but_own},
    {"alltoall", OpKind::all_to_all, false, false, true, all_but_own},
    {"broadcast", OpKind::broadcast, false, true, false, whole},
    {"sendrecv", OpKind::send, false, false, false, whole},
    {"hypercube", std::nullopt, false, false, true, all_but_own},
    {"scatter", OpKind::scatter, false, true, true, all_but_own},
    {"gather", OpKind::gather, false, true, true, all_but_own},
    {"reduce", OpKind::reduce, true, true, false, whole},
}};

std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

const NcclTestCollective* find_nccl_test(std::string_view name) {
  const auto found = std::ranges::find(nccl_test_table, name, &NcclTestCollective::name);
  return found == nccl_test_table.end() ? nullptr : &*found;
}

std::vector<const NcclTestCollective*> nccl_tests_like(const NcclTestRun::Row& row) {
  const bool counts_one_rank = row.count > 0 && row.word > 0 && row.bytes > row.count * row.word;
  std::vector<const NcclTestCollective*> like;
  for (const NcclTestCollective& one : nccl_test_table) {
    const bool fits = one.adds == (row.redop != "none") && one.has_root == (row.root >= 0);
    if (fits && one.op && (row.word == 0 || one.counts_one_rank == counts_one_rank)) like.push_back(&one);
  }
  return like;
}

std::string nccl_test_named_in(std::string_view text) {
  const std::string letters = letters_of(text);
  if (letters.find("alltoallv") != std::string::npos) return "alltoallv";
  for (const NcclTestCollective& one : nccl_test_table)
    if (letters.find(letters_of(one.name)) != std::string::npos) return std::string(one.name);
  return "";
}

}  // namespace tandem::studies
