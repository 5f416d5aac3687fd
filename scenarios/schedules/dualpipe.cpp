#include <algorithm>
#include <array>
#include <deque>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {
namespace {

/// Speaks of a stage's near and far chunk: the near one's micro-batches enter at the nearer end of the pipeline.
class DualPipeWriter {
 public:
  explicit DualPipeWriter(const PipelineShape& shape)
      : half_(shape.micro_batches / 2), near_(2 * shape.stage < shape.stages ? 0 : 1) {}

  enum Side : std::uint8_t {
    near,
    far
  };

  void forward(Side side) { append(Action::Kind::forward, forwards_, side); }
  void backward(Side side) { append(Action::Kind::backward, backwards_, side); }
  void input(Side side) {
    append(Action::Kind::backward_input, backwards_, side);
    put_off_.push_back(actions_.back());
  }
  /// The longest put off.
  void weight() {
    put_off_.front().kind = Action::Kind::backward_weight;
    actions_.push_back(put_off_.front());
    put_off_.pop_front();
  }
  void forward_beside_backward(Side forwards, Side backwards) {
    forward(forwards);
    actions_.back().beside_next = true;
    backward(backwards);
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  std::int32_t half_, near_;
  std::array<std::int32_t, 2> forwards_{}, backwards_{};
  std::vector<Action> actions_;
  std::deque<Action> put_off_;

  void append(Action::Kind kind, std::array<std::int32_t, 2>& done, Side side) {
    const std::int32_t chunk = side == near ? near_ : 1 - near_;
    actions_.push_back({kind, chunk * half_ + done[static_cast<std::size_t>(side)]++, chunk});
  }
};

}  // namespace

std::vector<Action> dualpipe(const PipelineShape& shape) {
  constexpr DualPipeWriter::Side near = DualPipeWriter::near, far = DualPipeWriter::far;
  const std::int32_t from_end = std::min(shape.stage, shape.stages - 1 - shape.stage);
  const std::int32_t to_middle = shape.stages / 2 - 1 - from_end;
  const std::int32_t steady = shape.micro_batches / 2 - shape.stages + from_end + 1;
  DualPipeWriter write(shape);
  for (std::int32_t i = 0; i < 2 * to_middle; ++i) write.forward(near);
  for (std::int32_t i = 0; i <= from_end; ++i) {
    write.forward(near);
    write.forward(far);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    write.input(far);
    write.weight();
    write.forward(far);
  }
  for (std::int32_t i = 0; i < steady; ++i) {
    if (i == 0 && to_middle == 0) {  // the middle stages' first pair is not overlapped: the backward could not start as early
      write.forward(near);
      write.backward(far);
    } else {
      write.forward_beside_backward(near, far);
    }
    write.forward_beside_backward(far, near);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    write.backward(far);
    write.forward_beside_backward(far, near);
  }
  // The second half of the cool-down's backwards is split, the far chunk's first where their number is even.
  bool split = false;
  const auto backward = [&](DualPipeWriter::Side side) { split ? write.input(side) : write.backward(side); };
  for (std::int32_t i = 0; i <= from_end; ++i) {
    const bool halfway = i == (from_end + 1) / 2;
    split = split || (halfway && from_end % 2 == 1);
    backward(far);
    split = split || halfway;
    backward(near);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    write.weight();
    write.input(near);
  }
  for (std::int32_t i = 0; i <= from_end; ++i) write.weight();
  return write.take();
}

}  // namespace tandem::scenarios
