#pragma once

#include <functional>

#include "scenarios/lowering/attend.h"

namespace tandem::scenarios {

/// What a context-parallel rank passes on to the others of its keys and values, or the gradients of that: two tensors
/// [positions, b, ...], one after the other in one buffer, so that one message carries both.
struct PassedKeys {
  BufferId first = no_id, second = no_id;
  BufferId both = no_id;
};

/// Returns `both` as two tensors of these shapes.
PassedKeys passed_in(Context& context, BufferId both, const Shape& first, const Shape& second);
/// Returns `both` as two tensors of the shapes of `like`, with `times` as many positions.
PassedKeys passed_in(Context& context, BufferId both, const PassedKeys& like, std::int64_t times = 1);

/// How the keys and values of the heads are made of what is passed on, and the way back.
struct KeyMaking {
  /// `q` with the keys and values at `positions`, which `passed` is of.
  std::function<Heads(Context&, BufferId q, const PassedKeys& passed, const Positions& positions)> heads;
  /// The gradient of `passed`, from `d`, that of the heads made of it. Adds to those of the weights that made them.
  std::function<PassedKeys(Context&, const PassedKeys& passed, const Heads& d, const Positions& positions)> gradient;
};

/// The keys and values themselves are passed on.
KeyMaking as_they_are();

/// Makes the heads once more, for the backward.
Heads make_again(Context& context, const KeyMaking& making, BufferId q, const PassedKeys& passed, const Positions& positions);

/// This rank's queries and what it passes on, or the gradients of both.
struct Attending {
  BufferId q = no_id;
  PassedKeys keys;
  std::optional<AttentionSink> sink = {};
};

/// As `Attended`, for queries that attend to keys that are passed on. `mine` is what was attended, or what recomputing it gave.
struct AttendedAcross {
  BufferId out = no_id;
  std::function<Attending(Context&, const Attending& mine, BufferId dout)> backward;
};

/// Returns whether keys are passed on between ranks: not where one has them all, nor where heads are dealt out instead (ulysses).
bool passes_keys(const Context& context);
/// Returns how often `KeyMaking::gradient` is called in a backward pass of a layer of this kind.
int key_makings(const Context& context, Mixer mixer);

/// Lowers attention across ranks, by ring or all-gather.
AttendedAcross attend_across(Context& context, const Attending& mine, const KeyMaking& making);

}  // namespace tandem::scenarios
