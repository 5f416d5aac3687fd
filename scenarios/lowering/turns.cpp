#include "scenarios/lowering/turns.h"

#include <utility>

namespace tandem::scenarios {
namespace {

/// A pass that is lowered turn by turn. Its pieces are recorded one by one, each when all before it is lowered.
class PassInTurns {
 public:
  PassInTurns(Context& context, ChunkProgram::Pieces pieces) : context_(context), pieces_(std::move(pieces)) {}

  bool is_done() const { return next_ == pieces_.size() && recorded_.empty(); }

  void take_turn() {
    while (!is_done()) {
      if (recorded_.empty()) record(pieces_[next_++]);
      while (!recorded_.empty()) {
        const std::function<void()> lower = std::move(recorded_.front());
        recorded_.pop_front();
        if (!lower) return;
        lower();
      }
    }
  }

 private:
  Context& context_;
  ChunkProgram::Pieces pieces_;
  std::size_t next_ = 0;
  Recording recorded_;

  void record(const std::function<void()>& piece) {
    context_.recording = &recorded_;
    piece();
    context_.recording = nullptr;
  }
};

}  // namespace

void take_turns(Context& context, ChunkProgram::Pieces first, ChunkProgram::Pieces second) {
  PassInTurns one(context, std::move(first)), other(context, std::move(second));
  while (!one.is_done() || !other.is_done()) {
    one.take_turn();
    other.take_turn();
  }
}

}  // namespace tandem::scenarios
