// The sharded step, executed, gives the loss, the gradients and the updated weights of the unsharded step.

#include <gtest/gtest.h>

#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::equivalence_test {
namespace {

class Equivalence : public testing::TestWithParam<const char*> {};

// fp32 sums of a few hundred terms in another order: relative 1e-5 is ten times what is seen, and far below any error of logic.
TEST_P(Equivalence, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Dense, Equivalence,
    testing::Values(
        "parallelism.dp=2 parallelism.zero=0", "parallelism.dp=2 parallelism.zero=1", "parallelism.dp=4 parallelism.zero=2",
        "parallelism.dp=2 training.overlap.dp=false", "parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
        "parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004", "parallelism.tp=2", "parallelism.tp=4",
        "parallelism.tp=2 parallelism.sp=true", "parallelism.tp=4 parallelism.sp=true training.micro_batch=2",
        "parallelism.pp=2 training.schedule=gpipe", "parallelism.pp=4 training.schedule=gpipe", "parallelism.pp=2",
        "parallelism.pp=4", "parallelism.pp=4 training.overlap.pp=false",
        "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
        "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b training.overlap.pp=false",
        "model.layers=6 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
        "parallelism.account_for_embedding=true parallelism.account_for_loss=true",
        "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.order=[dp,pp,tp,cp,ep]",
        "parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 training.recompute=full",
        "parallelism.tp=2 parallelism.sp=true training.recompute=full",
        "parallelism.tp=2 parallelism.sp=true training.recompute=selective", "training.micro_batch=4",
        "model.norm=layer model.gated=false parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
        "model.rotary=false model.max_positions=16 parallelism.tp=2", "model.tied_embeddings=true parallelism.tp=2",
        "model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2",
        "model.tied_embeddings=true parallelism.pp=2 parallelism.tp=2 parallelism.sp=true parallelism.zero=0",
        "model.tied_embeddings=true parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b parallelism.dp=2 "
        "parallelism.zero=2"));

}  // namespace
}  // namespace tandem::studies::equivalence_test
