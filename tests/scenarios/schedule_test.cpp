#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ostream>

#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios::schedule_test {
namespace {

struct Pipeline {
  ScheduleKind kind;
  std::int32_t stages, micro_batches, chunks;
};

void PrintTo(const Pipeline& p, std::ostream* out) {
  *out << name_of(p.kind) << " p " << p.stages << " m " << p.micro_batches << " v " << p.chunks;
}

ChunkPlacement placement_of(const Pipeline& p) {
  Scenario scenario;
  scenario.training.schedule = p.kind;
  scenario.parallelism.pp = p.stages;
  scenario.parallelism.vpp = p.kind == ScheduleKind::dualpipe ? 1 : p.chunks;
  return ChunkPlacement(scenario);
}

/// Passes through a stage: dualpipe sends each micro-batch through one of its chunks, the others through all.
std::int32_t passes(const Pipeline& p) { return p.kind == ScheduleKind::dualpipe ? p.micro_batches : p.micro_batches * p.chunks; }

std::vector<Action> actions_of(const Pipeline& p, std::int32_t stage) {
  return schedule(p.kind, {.stage = stage, .stages = p.stages, .micro_batches = p.micro_batches, .chunks = p.chunks});
}

/// What an action holds of its (micro-batch, chunk): nothing until its forward, its activations until the last of its backward.
std::int32_t held_after(const Action& action) {
  switch (action.kind) {
    case Action::Kind::forward:
      return 1;
    case Action::Kind::backward_input:
      return 0;
    default:
      return -1;
  }
}

/// The largest number of (micro-batch, chunk) whose forward is done and whose backward is not, in whole.
std::int32_t most_in_flight(const std::vector<Action>& actions) {
  std::int32_t now = 0, most = 0;
  for (const Action& action : actions) most = std::max(most, now += held_after(action));
  return most;
}

std::int32_t forwards_before_the_first_backward(const std::vector<Action>& actions) {
  const auto backward = std::ranges::find_if(actions, [](const Action& action) { return action.kind != Action::Kind::forward; });
  return static_cast<std::int32_t>(backward - actions.begin());
}

std::vector<Pipeline> pipelines() {
  std::vector<Pipeline> all;
  for (const std::int32_t stages : {1, 2, 3, 4, 8}) {
    for (const std::int32_t micro_batches : {1, 2, 4, 7, 24}) {
      all.push_back({ScheduleKind::gpipe, stages, micro_batches, 1});
      all.push_back({ScheduleKind::one_f_one_b, stages, micro_batches, 1});
      all.push_back({ScheduleKind::zero_bubble_h1, stages, micro_batches, 1});
    }
    for (const std::int32_t micro_batches : {1, 4, 7, 24}) {
      if (stages > 1) all.push_back({ScheduleKind::zero_bubble_v, stages, micro_batches, 2});
    }
    for (const std::int32_t micro_batches : {2 * stages, 2 * stages + 2, 5 * stages}) {
      if (stages % 2 == 0) all.push_back({ScheduleKind::dualpipe, stages, micro_batches, 2});
    }
    for (const std::int32_t chunks : {2, 3, 8}) {
      for (const std::int32_t rounds : {1, 2, 5}) all.push_back({ScheduleKind::interleaved, stages, rounds * stages, chunks});
    }
  }
  return all;
}

/// Checks each pipeline; a failure names it.
void for_each_pipeline(const std::function<void(const Pipeline&)>& check) {
  for (const Pipeline& p : pipelines()) {
    SCOPED_TRACE(testing::PrintToString(p));
    check(p);
  }
}

TEST(Schedules, RunEachForwardAndThenItsBackwardOnce) {
  for_each_pipeline([](const Pipeline& p) {
    for (std::int32_t stage = 0; stage < p.stages; ++stage) {
      std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Action::Kind>> done;
      for (const Action& action : actions_of(p, stage)) done[{action.micro_batch, action.chunk}].push_back(action.kind);
      EXPECT_EQ(done.size(), static_cast<std::size_t>(passes(p)));
      for (const auto& [key, kinds] : done) {
        const bool split = kinds.size() == 3;
        EXPECT_EQ(kinds, split ? (std::vector{Action::Kind::forward, Action::Kind::backward_input, Action::Kind::backward_weight})
                               : (std::vector{Action::Kind::forward, Action::Kind::backward}));
        EXPECT_TRUE(key.first >= 0 && key.first < p.micro_batches && key.second >= 0 && key.second < p.chunks);
      }
    }
  });
}

TEST(Schedules, KeepNoMoreInFlightThanTheirPapersSay) {
  for_each_pipeline([](const Pipeline& p) {
    for (std::int32_t stage = 0; stage < p.stages; ++stage) {
      const std::int32_t following = p.stages - 1 - stage;
      std::int32_t bound = p.micro_batches;  // GPipe
      if (p.kind == ScheduleKind::one_f_one_b) bound = std::min(following + 1, p.micro_batches);
      // Qi et al. 2023, table 2: ZB-H1 holds what 1F1B's first stage does, on every stage.
      if (p.kind == ScheduleKind::zero_bubble_h1) bound = std::min(p.stages, p.micro_batches);
      if (p.kind == ScheduleKind::interleaved) {
        bound = std::min(2 * following + (p.chunks - 1) * p.stages + 1, p.micro_batches * p.chunks);
      }
      // Section 6: ZB-V, too, in chunks of half a stage. Short of micro-batches, some stages hold fewer.
      if (p.kind == ScheduleKind::zero_bubble_v) bound = 2 * std::min(p.stages, p.micro_batches);
      if (p.kind == ScheduleKind::zero_bubble_v && p.micro_batches < 2 * p.stages) {
        EXPECT_LE(most_in_flight(actions_of(p, stage)), bound) << "stage " << stage;
        continue;
      }
      // DeepSeek-V3, table 2: DualPipe holds one more than there are stages.
      if (p.kind == ScheduleKind::dualpipe) bound = p.stages + 1;
      EXPECT_EQ(most_in_flight(actions_of(p, stage)), bound) << "stage " << stage;
    }
  });
}

// Megatron-LM, megatron/core/pipeline_parallel/schedules.py: num_warmup_microbatches = (p - rank - 1) * 2 + (v - 1) * p, at most
// all; the steady state's first forward comes before its first backward.
TEST(Schedules, WarmUpAsMegatronDoes) {
  for_each_pipeline([](const Pipeline& p) {
    if (p.kind == ScheduleKind::gpipe || placement_of(p).descends()) return;
    const std::int32_t all = p.micro_batches * p.chunks;
    for (std::int32_t stage = 0; stage < p.stages; ++stage) {
      const std::int32_t following = p.stages - 1 - stage;
      const std::int32_t warm_up = p.kind != ScheduleKind::interleaved ? following : 2 * following + (p.chunks - 1) * p.stages;
      EXPECT_EQ(forwards_before_the_first_backward(actions_of(p, stage)), std::min(warm_up + 1, all)) << "stage " << stage;
    }
  });
}

/// Plays all stages' schedules with transfers that take no time. Times are whole; `stuck` when no stage can go on.
struct Played {
  bool stuck = false;
  std::int64_t makespan = 0;
};

/// A whole backward takes both its parts' times.
struct Times {
  std::int64_t forward, backward_input, backward_weight;

  std::int64_t of(Action::Kind kind) const {
    switch (kind) {
      case Action::Kind::forward:
        return forward;
      case Action::Kind::backward:
        return backward_input + backward_weight;
      case Action::Kind::backward_input:
        return backward_input;
      default:
        return backward_weight;
    }
  }
};

Played play(const Pipeline& p, const Times& times) {
  const ChunkPlacement placement = placement_of(p);
  using Done = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;  // (micro-batch, part of the model) -> end
  Done forward, backward;
  std::vector<std::vector<Action>> actions;
  for (std::int32_t stage = 0; stage < p.stages; ++stage) actions.push_back(actions_of(p, stage));
  std::vector<std::size_t> next(actions.size(), 0);
  std::vector<std::int64_t> free(actions.size(), 0);
  /// When the action's input is there; nothing if it is not.
  const auto ready = [&](std::int32_t stage, const Action& action) -> std::optional<std::int64_t> {
    const std::int32_t part = placement.part(stage, action.chunk);
    const bool is_forward = action.kind == Action::Kind::forward;
    if (action.kind == Action::Kind::backward_weight || (is_forward && part == 0)) return 0;
    const bool turns = !is_forward && part == placement.parts() - 1;  // the last part goes back from its own forward
    const Done& source = is_forward || turns ? forward : backward;
    const auto input = source.find({action.micro_batch, is_forward ? part - 1 : turns ? part : part + 1});
    return input == source.end() ? std::nullopt : std::optional(input->second);
  };
  Played played;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < actions.size(); ++s) {
      if (next[s] == actions[s].size()) continue;
      const auto stage = static_cast<std::int32_t>(s);
      const std::size_t count = actions[s][next[s]].beside_next ? 2 : 1;  // a pair starts together and ends together
      bool all_ready = true;
      std::int64_t start = free[s], duration = 0;
      for (std::size_t i = next[s]; i < next[s] + count; ++i) {
        const auto at = ready(stage, actions[s][i]);
        all_ready = all_ready && at;
        start = std::max(start, at.value_or(0));
        duration += times.of(actions[s][i].kind);
      }
      if (!all_ready) continue;
      free[s] = start + duration;
      for (std::size_t i = next[s]; i < next[s] + count; ++i) {
        const Action& action = actions[s][i];
        if (action.kind == Action::Kind::backward_weight) continue;
        (action.kind == Action::Kind::forward ? forward : backward)[{action.micro_batch, placement.part(stage, action.chunk)}] =
            free[s];
      }
      played.makespan = std::max(played.makespan, free[s]);
      next[s] += count;
      moved = true;
    }
  }
  for (std::size_t s = 0; s < actions.size(); ++s) played.stuck = played.stuck || next[s] < actions[s].size();
  return played;
}

// Idle per stage: (p - 1)(f + b) for GPipe and 1F1B, where f and b are a stage's times; with v chunks a stage's f and b are v
// times a chunk's, and the idle time (p - 1)(f + b) / v is (p - 1) times a chunk's (Narayanan et al. 2021, sections 2.2.1
// and 2.2.2). ZB-H1: (p - 1)(f + b - w), where b is the inputs' and w the weights' gradient (Qi et al. 2023, table 2); with fewer
// micro-batches than stages there are not enough weight gradients to fill in: at most 1F1B's.
TEST(Schedules, FinishWithTheBubbleOfTheirPapers) {
  for_each_pipeline([](const Pipeline& p) {
    for (const Times& t : {Times{1, 1, 1}, {2, 2, 1}, {2, 3, 2}, {10, 12, 9}}) {
      const Played played = play(p, t);
      ASSERT_FALSE(played.stuck);
      const std::int64_t all = t.forward + t.backward_input + t.backward_weight;
      const std::int64_t bubble = played.makespan - std::int64_t{passes(p)} * all;
      if (p.kind == ScheduleKind::zero_bubble_v) {
        // Qi et al. 2023, section 6: no stage pauses if all three times are the same; the last begins after p - 1 forwards.
        if (p.micro_batches >= 2 * p.stages && t.forward == t.backward_input && t.forward == t.backward_weight) {
          EXPECT_EQ(bubble, (p.stages - 1) * t.forward);
        }
      } else if (p.kind == ScheduleKind::dualpipe) {
        // DeepSeek-V3, table 2: (p / 2 - 1)(F&B + B - 3 W), where F&B is a pair's time and B a whole backward's; exact where
        // forwards take as long as the gradient of inputs, less where they are shorter.
        const std::int64_t of_paper = (p.stages / 2 - 1) * (all + t.backward_input + t.backward_weight - 3 * t.backward_weight);
        if (t.forward == t.backward_input) {
          EXPECT_EQ(bubble, of_paper);
        } else {
          EXPECT_LE(bubble, of_paper);
        }
      } else if (p.kind != ScheduleKind::zero_bubble_h1) {
        EXPECT_EQ(bubble, (p.stages - 1) * all);
      } else if (p.micro_batches >= p.stages) {
        EXPECT_EQ(bubble, (p.stages - 1) * (t.forward + t.backward_input - t.backward_weight));
      } else {
        EXPECT_LE(bubble, (p.stages - 1) * all);
      }
    }
  });
}

}  // namespace
}  // namespace tandem::scenarios::schedule_test
