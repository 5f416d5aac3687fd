#include "scenarios/lowering/bucket_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tandem::scenarios::bucket_layout_test {
namespace {

struct Drawn {
  std::vector<std::int64_t> sizes;
  std::int64_t owners, granularity;
};

Drawn draw(std::mt19937& random) {
  const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(1 + random() % most); };
  Drawn drawn{.sizes = {}, .owners = up_to(9), .granularity = up_to(4)};
  for (std::int64_t count = up_to(20); count > 0; --count) drawn.sizes.push_back(up_to(100));
  return drawn;
}

void expect_no_overlap(const Drawn& drawn, const BucketLayout& layout) {
  std::vector<std::size_t> order(drawn.sizes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::size_t i) { return layout.offsets[i]; });
  std::int64_t end = 0;
  for (const std::size_t i : order) {
    EXPECT_GE(layout.offsets[i], end);
    end = layout.offsets[i] + drawn.sizes[i];
  }
  EXPECT_LE(end, layout.slice * drawn.owners);
  EXPECT_EQ(layout.slice % drawn.granularity, 0);
}

TEST(BucketLayout, FlatHasNoPaddingButAtTheEnd) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Drawn drawn = draw(random);
    const BucketLayout layout = lay_out_flat(drawn.sizes, drawn.owners, drawn.granularity);
    expect_no_overlap(drawn, layout);
    for (std::size_t p = 1; p < drawn.sizes.size(); ++p) EXPECT_EQ(layout.offsets[p], layout.offsets[p - 1] + drawn.sizes[p - 1]);
    const std::int64_t elements = std::reduce(drawn.sizes.begin(), drawn.sizes.end());
    EXPECT_LT(layout.slice * drawn.owners - elements, drawn.owners * drawn.granularity);
  }
}

// The fullest owner got its last parameter when it had least, no more than the mean of what the others have: at most the mean and
// the largest, less its own share of that (Graham 1969, of list scheduling).
TEST(BucketLayout, WholeCutsNoParameterAndIsNearlyEven) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const Drawn drawn = draw(random);
    const BucketLayout layout = lay_out_whole(drawn.sizes, drawn.owners, drawn.granularity);
    expect_no_overlap(drawn, layout);
    for (std::size_t p = 0; p < drawn.sizes.size(); ++p)
      EXPECT_EQ(layout.offsets[p] / layout.slice, (layout.offsets[p] + drawn.sizes[p] - 1) / layout.slice);
    const auto owners = static_cast<double>(drawn.owners);
    const double mean = static_cast<double>(std::reduce(drawn.sizes.begin(), drawn.sizes.end())) / owners;
    const double most = mean + static_cast<double>(std::ranges::max(drawn.sizes)) * (1 - 1 / owners);
    EXPECT_LE(static_cast<double>(layout.slice), most + static_cast<double>(drawn.granularity));
  }
}

TEST(BucketLayout, WholeGivesTheLargestFirstToTheFirstOwners) {
  const BucketLayout layout = lay_out_whole({2, 9, 4}, 5, 1);
  EXPECT_EQ(layout.slice, 9);
  EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{18, 0, 9}));
}

}  // namespace
}  // namespace tandem::scenarios::bucket_layout_test
