#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "runtime/dag/dag.h"
#include "tests/runtime/edges.h"
#include "traces/fields.h"
#include "traces/tables.h"

namespace tandem::studies {

/// Field by field, to the last bit.
template <typename T>
bool same(const T& a, const T& b) {
  if constexpr (traces::Record<T>) {
    return std::apply([&](auto... field) { return (same(a.*field, b.*field) && ...); }, traces::fields_of<T>);
  } else if constexpr (std::is_same_v<T, Operand>) {
    return a.buffer == b.buffer && a.access() == b.access();
  } else if constexpr (traces::IsVector<T>::value) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return same(x, y); });
  } else {
    return a == b;
  }
}

/// Task by task, so that a difference says where.
inline void expect_same(const Dag& a, const Dag& b) {
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  for (TaskId id = 0; id < a.tasks.size(); ++id) ASSERT_TRUE(same(a.tasks[id], b.tasks[id])) << id;
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (BufferId id = 0; id < a.buffers.size(); ++id) ASSERT_TRUE(same(a.buffers[id], b.buffers[id])) << id;
  EXPECT_TRUE(a.attributes == b.attributes);
  EXPECT_TRUE(same(a, b));
  EXPECT_EQ(edges_of(a), edges_of(b));
  EXPECT_TRUE(a.tasks == b.tasks);  // their kernels, too
  EXPECT_EQ(a.first_of_kernel, b.first_of_kernel);
}

}  // namespace tandem::studies
