// The targets without libFuzzer and its eye for code that was not reached yet: many inputs from the mutators, the same each time.
// TANDEM_FUZZ_INPUTS asks for another number of them than there are by default, TANDEM_FUZZ_SEED for others.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/fuzz/byte_mutator.h"
#include "tests/fuzz/target.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::fuzz::mutation_test {
namespace {

std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Inputs that were taken, of which more inputs are made; a bounded number, so that the early ones go again.
class Pool {
 public:
  explicit Pool(const Target& target) : inputs_(target.seeds ? target.seeds() : std::vector<std::string>{""}) {}

  const std::string& any(Random& random) const { return inputs_[random() % inputs_.size()]; }
  void add(std::string bytes, Random& random) {
    constexpr std::size_t most = 64, longest = 20'000;
    if (bytes.size() > longest) return;
    if (inputs_.size() < most)
      inputs_.push_back(std::move(bytes));
    else
      inputs_[random() % most] = std::move(bytes);
  }

 private:
  std::vector<std::string> inputs_;
};

class Inputs : public testing::TestWithParam<std::size_t> {};

TEST_P(Inputs, AreReadOrRefused) {
  const Target& target = targets()[GetParam()];
  const std::vector<std::string> words = words_of(target);
  Pool pool(target);
  Random random(number_from("TANDEM_FUZZ_SEED", 1));
  const std::size_t inputs = number_from("TANDEM_FUZZ_INPUTS", 2000);
  std::chrono::duration<double> slowest(0);
  const std::string finding = std::filesystem::path(testing::TempDir()) / ("finding-" + target.name);
  for (std::size_t input = 0; input < inputs; ++input) {
    std::string bytes = target.mutate && random() % 4 != 0 ? target.mutate(pool.any(random), random, words) : "";
    if (bytes.empty()) bytes = mutate_bytes(pool.any(random), random, words);
    const auto start = std::chrono::steady_clock::now();
    try {
      const Answer answer = answer_of(target, bytes);
      if (const auto took = std::chrono::steady_clock::now() - start; took > slowest) {
        slowest = took;
        std::ofstream(finding + ".slowest", std::ios::binary) << bytes;
      }
      ASSERT_TRUE(answer.taken || answer.refusal.size() > 10) << answer.refusal;
      if (answer.taken) pool.add(std::move(bytes), random);
    } catch (const std::exception& error) {
      std::ofstream(finding, std::ios::binary) << bytes;
      FAIL() << "input " << input << ", which is " << finding << " now, is no refusal: " << error.what();
    }
  }
  std::cout << target.name << ": " << inputs << " inputs, the slowest took " << slowest.count() << " s\n";
}

std::string name_of(const testing::TestParamInfo<std::size_t>& which) {
  std::string name = targets()[which.param].name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(SlowMutations, Inputs, testing::Range(std::size_t{0}, targets().size()), name_of);

}  // namespace
}  // namespace tandem::fuzz::mutation_test
