#include "scenarios/lowering/turns.h"

#include <utility>

namespace tandem::scenarios {
namespace {

/// Its pieces are recorded one by one, each when all before it is lowered.
class LoweredPass : public PassInTurns {
 public:
  LoweredPass(Context& context, ChunkProgram::Pieces pieces, PassNotes* notes)
      : context_(context), pieces_(std::move(pieces)), notes_(notes) {}

  bool is_done() const override { return next_ == pieces_.size() && recorded_.empty(); }

  void take_piece() override {
    if (next_ == pieces_.size()) return;
    const NotesScope scope(context_, notes_);
    pieces_[next_++]();
  }

  void take_turn() override {
    if (is_done()) return;
    const NotesScope scope(context_, notes_);
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
  PassNotes* notes_;
  std::size_t next_ = 0;
  Recording recorded_;

  void record(const std::function<void()>& piece) {
    context_.recording = &recorded_;
    piece();
    context_.recording = nullptr;
  }
};

}  // namespace

std::unique_ptr<PassInTurns> lowered_pass(Context& context, ChunkProgram::Pieces pieces, PassNotes* notes) {
  return std::make_unique<LoweredPass>(context, std::move(pieces), notes);
}

void take_turns(const Scenario& scenario, PassInTurns& forward, PassInTurns& backward) {
  forward.take_piece();
  backward.take_piece();
  while (!forward.is_done() || !backward.is_done()) {
    if (scenario.overlaps_ep()) {
      backward.take_turn();
      forward.take_turn();
    } else {
      forward.take_piece();
      backward.take_piece();
    }
  }
}

}  // namespace tandem::scenarios
