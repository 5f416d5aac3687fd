#include <algorithm>
#include <array>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {
namespace {

/// Appends each chunk's actions of one kind in the order of the micro-batches; those beyond the last are left out.
class ZbvWriter {
 public:
  explicit ZbvWriter(std::int32_t micro_batches) : micro_batches_(micro_batches) {}

  void forward(int chunk) { append(Action::Kind::forward, forwards_, chunk); }
  void input(int chunk) { append(Action::Kind::backward_input, inputs_, chunk); }
  void weight(int chunk) { append(Action::Kind::backward_weight, weights_, chunk); }

  std::int32_t forwards(std::size_t chunk) const { return forwards_[chunk]; }
  bool owes_weight(std::size_t chunk) const { return weights_[chunk] < inputs_[chunk]; }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  std::int32_t micro_batches_;
  std::array<std::int32_t, 2> forwards_{}, inputs_{}, weights_{};
  std::vector<Action> actions_;

  void append(Action::Kind kind, std::array<std::int32_t, 2>& done, int chunk) {
    const std::int32_t micro_batch = done[static_cast<std::size_t>(chunk)]++;
    if (micro_batch < micro_batches_) actions_.push_back({kind, micro_batch, chunk});
  }
};

}  // namespace

std::vector<Action> zero_bubble_v(const PipelineShape& shape) {
  const std::int32_t following = shape.stages - shape.stage;  // this stage included
  const std::int32_t all = std::max(2 * shape.stages - 1, shape.micro_batches);
  ZbvWriter write(shape.micro_batches);
  for (std::int32_t i = 0; i < 2 * following - 1; ++i) write.forward(0);
  for (std::int32_t i = 0; i < shape.stage; ++i) {
    write.forward(1);
    write.forward(0);
  }
  for (std::int32_t i = 0; i < following; ++i) {
    write.forward(1);
    write.input(1);
    write.weight(1);
  }
  while (write.forwards(1) < write.forwards(0) || write.forwards(0) < all) {
    if (write.forwards(0) < all) write.forward(0);
    write.input(0);
    write.weight(0);
    write.forward(1);
    write.input(1);
    write.weight(1);
  }
  for (std::int32_t i = 0; i < shape.stage; ++i) {
    write.input(0);
    write.input(1);
  }
  for (std::int32_t i = 0; i < following; ++i) {
    write.input(0);
    write.weight(0);
  }
  while (write.owes_weight(1)) write.weight(1);
  while (write.owes_weight(0)) write.weight(0);
  return write.take();
}

}  // namespace tandem::scenarios
