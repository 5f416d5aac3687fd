#pragma once

#include <iosfwd>

#include "runtime/cuda/gpu.h"
#include "runtime/dag/timeline.h"
#include "runtime/host/memory.h"

namespace tandem::studies {

/// A tiny step, by what sets it apart.
struct TinyStep {
  const char* overrides;
  DType precision = DType::f32;
};
void PrintTo(const TinyStep& step, std::ostream* out);

Dag dag_of(const TinyStep& step);

/// The largest difference of a rank's gradients or weights, over the largest element of each buffer.
double difference(const Dag& dag, GpuStep& gpu, const HostMemory& host, RankIndex rank, BufferKind kind);

/// That every task of the rank ended after it began, and began after what it depends on there had ended.
void expect_in_order(const Dag& dag, const Timeline& timeline, RankIndex rank);

}  // namespace tandem::studies
