// The comparison with the unsharded step bites: break one thing in the DAG, and it is another step.

#include <gtest/gtest.h>

#include <map>

#include "runtime/executor.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/serial_backend.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::mutation_test {
namespace {

/// A step that uses everything: tensor, sequence, pipeline and data parallelism, tied embeddings, several buckets.
Scenario everything() {
  return tiny_model(
      words("parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 training.global_batch=4 "
            "model.tied_embeddings=true training.bucket_MB=0.02 model.norm=layer"));
}

class Mutation : public testing::Test, protected UnshardedStep {
 protected:
  Mutation() : UnshardedStep(everything()) {}
};

TEST_F(Mutation, NoneLeavesTheStepAsItIsInAnyOrder) {
  const Dag dag = lowered(everything());
  for (unsigned seed = 0; seed < 10; ++seed) EXPECT_LT(difference(dag, seed), 1e-5);
}

TEST_F(Mutation, AnyDroppedCollectiveShows) {
  const Dag dag = lowered(everything());
  std::map<std::string, std::vector<GroupId>> by_name;
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const TaskId first = dag.members_of(g).front();
    by_name[std::string(name_of(dag.tasks[first].phase)) + " " + std::string(dag.name_of_task(first))].push_back(g);
  }
  EXPECT_GT(by_name.size(), 15U);
  for (const auto& [name, groups] : by_name) {
    EXPECT_FALSE(difference(dag, 0, {groups[groups.size() / 2]}) <= allowed) << name << " dropped once goes unnoticed";
  }
}

TEST_F(Mutation, DroppedDependenciesShow) {
  const Dag dag = lowered(everything());
  const std::pair<const char*, const char*> edges[] = {
      {"parameters", "qkv"},                  // gathered weights before their use
      {"qkv", "qkv"},                         // gathered sequence before the product
      {"receive forward", "attention norm"},  // the stage before
      {"residual", "send forward"},           // to the stage after
      {"mlp up", "gradients"},                // gradients before their reduction
      {"gradients", "gradient norm"},         // reduced gradients before their norm
      {"gradient norm", "adam"},              // the norm before the clipping
      {"loss max", "loss sum"},
  };
  for (const auto& [from, to] : edges) {
    const Dag broken = without_edges(dag, from, to);
    bool noticed = false;
    for (unsigned seed = 0; seed < 40 && !noticed; ++seed) noticed = !(difference(broken, seed) <= allowed);
    EXPECT_TRUE(noticed) << from << " -> " << to << " dropped goes unnoticed";
  }
}

TEST_F(Mutation, ShiftedShardsShow) {
  const Dag dag = lowered(everything());
  std::set<std::string> sharded;
  for (const ParameterShard& shard : dag.shards) {
    if (shard.rows * shard.columns < shard.tensor_rows * shard.tensor_columns) sharded.insert(shard.tensor);
  }
  EXPECT_EQ(sharded.size(), 1 + 4 * 7U);  // the tied embedding; q, k, v, output, gate, up and down of four layers
  for (const std::string& tensor : sharded) {
    EXPECT_FALSE(difference(with_shifted_shards(dag, tensor)) <= allowed) << tensor << " on the wrong ranks goes unnoticed";
  }
}

TEST_F(Mutation, ShiftedVocabularyShows) {
  Dag dag = lowered(everything());
  for (OpAttributes& attributes : dag.attributes) {
    if (auto* embedding = std::get_if<EmbeddingAttributes>(&attributes)) embedding->vocab_start += 1;
  }
  EXPECT_FALSE(difference(dag) <= allowed);
}

}  // namespace
}  // namespace tandem::studies::mutation_test
