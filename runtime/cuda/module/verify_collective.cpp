#include "runtime/cuda/module/verify_collective.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/nccl_number.h"
#include "runtime/cuda/predictable_contents.h"

namespace tandem {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{16} << 20;  // a multiple of every type's size

/// Calls `visit` with the first element and the number of bytes of each piece of so many elements.
template <typename Visit>
void in_pieces(std::size_t elements, std::size_t element_bytes, const Visit& visit) {
  const std::size_t at_once = bytes_at_once / element_bytes;
  for (std::size_t first = 0; first < elements; first += at_once)
    visit(first, std::min(at_once, elements - first) * element_bytes);
}

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, direction, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "crafted contents");
}

void fill(const PredictableContents& contents, NcclType type, void* buffer, cudaStream_t stream) {
  std::vector<std::byte> piece;
  in_pieces(contents.elements(), bytes_of(type), [&](std::size_t first, std::size_t bytes) {
    piece.resize(bytes);
    contents.write(first, piece);
    copy(static_cast<std::byte*>(buffer) + first * bytes_of(type), piece.data(), bytes, cudaMemcpyHostToDevice, stream);
  });
}

std::optional<PredictableContents::Difference> first_difference(const PredictableContents& contents, NcclType type,
                                                                const void* buffer, cudaStream_t stream) {
  std::vector<std::byte> piece;
  std::optional<PredictableContents::Difference> difference;
  in_pieces(contents.elements(), bytes_of(type), [&](std::size_t first, std::size_t bytes) {
    if (difference) return;
    piece.resize(bytes);
    copy(piece.data(), static_cast<const std::byte*>(buffer) + first * bytes_of(type), bytes, cudaMemcpyDeviceToHost, stream);
    difference = contents.first_difference(first, piece);
  });
  return difference;
}

std::string sentence(const Dag& dag, TaskId member, const PredictableContents::Difference& difference) {
  const Task& task = dag.tasks[member];
  std::ostringstream text;
  text << operation(task.op).name << " '" << dag.name_of_task(member) << "' on communicator '" << dag.communicator_of(task).name
       << "': element " << difference.element << " of rank " << dag.ranks[task.rank].world_rank << " is " << difference.found
       << " instead of " << difference.expected;
  return text.str();
}

MemberPlace place_of(const Dag& dag, TaskId member) {
  const std::vector<std::uint32_t>& members = dag.communicator_of(dag.tasks[member]).members;
  const auto place = std::ranges::find(members, dag.ranks[dag.tasks[member].rank].world_rank) - members.begin();
  return {.member = static_cast<std::size_t>(place), .members = members.size()};
}

}  // namespace

void write_crafted_contents(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream) {
  const NcclCall call = plan_call(dag, member);
  if (call.receive != no_id) {
    const auto bytes = static_cast<std::size_t>(dag.buffers[call.receive].bytes());
    check(cudaMemsetAsync(address(call.receive), 0xFF, bytes, stream), "cudaMemsetAsync");
  }
  if (call.send != no_id) fill(PredictableContents::sent(call, place_of(dag, member)), call.type, address(call.send), stream);
}

void expect_crafted_result(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream) {
  const NcclCall call = plan_call(dag, member);
  if (call.receive == no_id) return;
  const PredictableContents expected = PredictableContents::expected(call, place_of(dag, member));
  const auto difference = first_difference(expected, call.type, address(call.receive), stream);
  if (difference) throw std::runtime_error(sentence(dag, member, *difference));
}

void verify_collective(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream,
                       const std::function<void()>& carry_out) {
  write_crafted_contents(dag, member, address, stream);
  carry_out();
  expect_crafted_result(dag, member, address, stream);
}

}  // namespace tandem
