// What libFuzzer calls. An executable has the targets of one NAME_fuzzer.cpp; where these are several, TANDEM_FUZZ_TARGET says
// which. `NAME_fuzzer --list` tells their names; `NAME_fuzzer --prepare FOLDER` writes the seeds to FOLDER/seeds and the
// dictionary to FOLDER/dictionary.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace tandem::fuzz {
namespace {

const Target& chosen() {
  static const Target& target = []() -> const Target& {
    if (targets().size() == 1) return targets().front();
    const char* name = std::getenv("TANDEM_FUZZ_TARGET");
    for (const Target& one : targets())
      if (name != nullptr && one.name == name) return one;
    std::cerr << "TANDEM_FUZZ_TARGET names no target; --list tells their names\n";
    std::exit(2);
  }();
  return target;
}

const std::vector<std::string>& chosen_words() {
  static const std::vector<std::string> words = words_of(chosen());
  return words;
}

void prepare(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "seeds");
  std::size_t number = 0;
  if (chosen().seeds)
    for (const std::string& seed : chosen().seeds())
      std::ofstream(folder / "seeds" / std::to_string(number++), std::ios::binary) << seed;
  std::ofstream dictionary(folder / "dictionary");
  for (const std::string& word : chosen_words()) dictionary << '"' << word << "\"\n";
}

}  // namespace
}  // namespace tandem::fuzz

using tandem::fuzz::chosen;

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string_view first = *count > 1 ? (*arguments)[1] : "";
  if (first == "--list") {
    for (const tandem::fuzz::Target& target : tandem::fuzz::targets()) std::cout << target.name << "\n";
    std::exit(0);
  }
  if (first == "--prepare" && *count > 2) {
    tandem::fuzz::prepare((*arguments)[2]);
    std::exit(0);
  }
  chosen();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  answer_of(chosen(), std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  if (!chosen().mutate || seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  tandem::fuzz::Random random(seed);
  const std::string changed =
      chosen().mutate(std::string(reinterpret_cast<const char*>(data), size), random, tandem::fuzz::chosen_words());
  if (changed.empty() || changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
