#include "runtime/dag/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tandem::tasks_test {
namespace {

/// Tasks of a few kinds.
std::vector<Task> random_tasks(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  const auto draw = [&](std::uint32_t below) { return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random); };
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kind = draw(100);
    tasks.push_back({.op = static_cast<OpKind>(kind % 7),
                     .phase = static_cast<Phase>(kind % 5),
                     .axis = static_cast<Axis>(kind % 3),
                     .stream = static_cast<Stream>(kind % 4),
                     .rank = kind % 2,
                     .first_operand = draw(1000),
                     .attributes = kind / 3,
                     .group = draw(2) == 0 ? no_id : draw(50),
                     .micro_batch = static_cast<std::int32_t>(draw(60)) - 1,
                     .layer = static_cast<std::int16_t>(static_cast<int>(kind % 11) - 1),
                     .chunk = static_cast<std::int16_t>(static_cast<int>(kind % 2) - 1),
                     .name = static_cast<std::uint16_t>(kind),
                     .kernel = kind % 5 == 0 ? no_id : kind});
  }
  return tasks;
}

Tasks held(const std::vector<Task>& tasks) {
  Tasks held;
  for (const Task& task : tasks) held.push_back(task);
  return held;
}

TEST(Tasks, AreWhatWasAdded) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<Task> expected = random_tasks(seed, 2000);
    Tasks tasks = held(expected);
    EXPECT_TRUE(std::ranges::equal(tasks, expected));
    EXPECT_LE(tasks.kinds().size(), 100U);
    const Task other = random_tasks(seed + 100, 1).front();
    expected[7] = other;
    tasks.set(7, other);
    tasks.push_like(12, 3, 4, 5);
    Task like = expected[12];
    like.first_operand = 3;
    like.group = 4;
    like.micro_batch = 5;
    expected.push_back(like);
    EXPECT_TRUE(std::ranges::equal(tasks, expected));
    EXPECT_EQ(tasks.back(), like);
    EXPECT_TRUE(tasks == held(expected));
    tasks.pop_back();
    EXPECT_FALSE(tasks == held(expected));
  }
}

TEST(Tasks, OfOneFieldEachAreKindsOfTheirOwn) {
  std::vector<Task> tasks(10);
  tasks[1].op = OpKind::fill;
  tasks[2].phase = Phase::optimizer;
  tasks[3].axis = Axis::dp;
  tasks[4].stream = Stream::dp;
  tasks[5].rank = 1;
  tasks[6].attributes = 1;
  tasks[7].layer = 1;
  tasks[8].chunk = 1;
  tasks[9].name = 1;
  tasks.emplace_back().kernel = 1;
  EXPECT_EQ(held(tasks).kinds().size(), tasks.size());
  EXPECT_TRUE(std::ranges::equal(held(tasks), tasks));
  for (Task& task : tasks) task = {.first_operand = task.attributes + 1, .group = 3, .micro_batch = 2};
  EXPECT_EQ(held(tasks).kinds().size(), 1U);
}

TEST(Tasks, AreAppendedAsWhatTheyAreElsewhere) {
  const std::vector<Task> first = random_tasks(1, 500), second = random_tasks(2, 700);
  Tasks all = held(first);
  const Tasks others = held(second);
  std::vector<GroupId> groups(50);
  for (GroupId group = 0; group < groups.size(); ++group) groups[group] = 1000 - group;
  const auto elsewhere = [](Task task) {
    task.rank += 5;
    return task;
  };
  std::vector<Task> kinds;
  for (const Task& kind : others.kinds()) kinds.push_back(elsewhere(kind));
  all.append(others, kinds, groups, 77);
  std::vector<Task> expected = first;
  for (Task task : second) {
    task = elsewhere(task);
    task.first_operand += 77;
    if (task.group != no_id) task.group = groups[task.group];
    expected.push_back(task);
  }
  EXPECT_TRUE(std::ranges::equal(all, expected));
}

TEST(Tasks, AreWalkedFromAnywhere) {
  const std::vector<Task> expected = random_tasks(3, 50);
  const Tasks tasks = held(expected);
  EXPECT_TRUE(std::equal(tasks.begin() + 10, tasks.end(), expected.begin() + 10, expected.end()));
  EXPECT_EQ(tasks.end() - tasks.begin(), 50);
  EXPECT_EQ(*(tasks.end() - 1), expected.back());
  EXPECT_EQ(tasks.begin()[20], expected[20]);
  EXPECT_EQ((tasks.begin() + 20)->name, expected[20].name);
  EXPECT_LT(tasks.begin(), tasks.end());
}

}  // namespace
}  // namespace tandem::tasks_test
