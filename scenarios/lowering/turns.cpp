#include "scenarios/lowering/turns.h"

#include <utility>

namespace tandem::scenarios {
namespace {

/// A pass that is lowered turn by turn. Its pieces are recorded one by one, each when all before it is lowered.
class PassInTurns {
 public:
  PassInTurns(Context& context, ChunkProgram::Pieces pieces) : context_(context), pieces_(std::move(pieces)) {}

  bool is_done() const { return next_ == pieces_.size() && recorded_.empty(); }

  void take_piece() {
    if (next_ < pieces_.size()) pieces_[next_++]();
  }

  /// Up to the next cut.
  void take_turn() {
    while (!is_done()) {
      if (recorded_.empty()) record(pieces_[next_++]);
      while (!recorded_.empty()) {
        const bool is_cut = std::holds_alternative<Recorded::Cut>(recorded_.front().what);
        if (!is_cut) context_.play(recorded_.front());
        recorded_.pop();
        if (is_cut) return;
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

void take_turns(Context& context, ChunkProgram::Pieces forward, ChunkProgram::Pieces backward) {
  PassInTurns forth(context, std::move(forward)), back(context, std::move(backward));
  forth.take_piece();
  back.take_piece();
  while (!forth.is_done() || !back.is_done()) {
    if (context.scenario.overlaps_ep()) {
      back.take_turn();
      forth.take_turn();
    } else {
      forth.take_piece();
      back.take_piece();
    }
  }
}

}  // namespace tandem::scenarios
