#include "studies/search/least_loss.h"

#include <gtest/gtest.h>

#include <random>

namespace tandem::studies::least_loss_test {
namespace {

TEST(LeastLoss, TakesWaitsThenTheKernelsThatLoseLeast) {
  const std::vector<SlowedKernel> kernels{{4, 0.25}, {2, 0}, {3, 0.5}};
  EXPECT_EQ(least_loss(kernels, 1, 1), 0);                // all in the wait
  EXPECT_EQ(least_loss(kernels, 1, 3), 0);                // and beside what loses nothing
  EXPECT_DOUBLE_EQ(least_loss(kernels, 1, 5), 2 * 0.25);  // two seconds beside the first kernel
  EXPECT_DOUBLE_EQ(least_loss(kernels, 1, 3 + 4 / 0.75), 4 / 0.75 - 4);
  // The third lasts twice as long beside all of it; what is left is waited for.
  EXPECT_DOUBLE_EQ(least_loss(kernels, 1, 3 + 4 / 0.75 + 6 + 7), (4 / 0.75 - 4) + 3 + 7);
}

// Wherever communication runs, all takes as long or longer.
TEST(LeastLoss, NoOtherPlaceCostsLess) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> share(0, 1);
  for (int draw = 0; draw < 1000; ++draw) {
    std::vector<SlowedKernel> kernels(1 + random() % 6);
    Seconds communicating = 0, loss = 0;
    const Seconds waits = share(random), waited = waits * share(random);
    communicating += waited;
    for (SlowedKernel& kernel : kernels) {
      kernel = {share(random), 0.9 * share(random)};
      const Seconds beside = share(random) * kernel.alone / (1 - kernel.loss);
      communicating += beside;
      loss += beside * kernel.loss;
    }
    const Seconds further = draw % 2 == 0 ? 0 : share(random);  // waits that would not be there
    communicating += further;
    loss += further;
    EXPECT_LE(least_loss(kernels, waits, communicating), loss * (1 + 1e-12)) << draw;
  }
}

}  // namespace
}  // namespace tandem::studies::least_loss_test
