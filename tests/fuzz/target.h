#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tandem::fuzz {

using Random = std::mt19937_64;

/// An input of Tandem's and how to make bytes for it. Each is told in a NAME_fuzzer.cpp.
struct Target {
  std::string name;  ///< "scenario"; files of corpus/NAME and regressions/NAME are inputs of it
  /// Hands the bytes to the reader. InputError is an answer; whatever else is thrown is a finding, and so is an answer that
  /// contradicts another one (`require`).
  std::function<void(const std::string& bytes)> read;
  /// Inputs to begin with, besides those in corpus/NAME.
  std::function<std::vector<std::string>()> seeds = {};
  /// Sources and data of the format, by their paths in the repository: texts between quotes in them are words of the dictionary.
  std::vector<std::string> words_of = {};
  /// Where bytes are too shallow: takes an input apart, changes something and puts it together. Returns an empty text where it
  /// cannot.
  std::function<std::string(const std::string& bytes, Random& random, const std::vector<std::string>& words)> mutate = {};
};

/// Of all sources that are linked, by name.
const std::vector<Target>& targets();

/// Adds targets to `targets()`: a NAME_fuzzer.cpp has one at namespace scope.
struct Registered {
  explicit Registered(std::vector<Target> added);
};

/// Hands the bytes to the target's reader. Returns whether they were taken, or the InputError's text otherwise.
struct Answer {
  bool taken = true;
  std::string refusal = {};
};
Answer answer_of(const Target& target, const std::string& bytes);

/// Throws std::logic_error: two answers contradict each other.
void require(bool holds, const std::string& what);

/// The text of a file of the repository, and of all files with the ending in one of its folders.
std::string repository_file(const std::string& path);
std::vector<std::string> repository_files(const std::string& folder, const std::string& ending);

/// Writes the bytes to a file of that name in a folder of this process; returns its path.
std::string scratch_file(const std::string& name, const std::string& bytes);

/// The words of the target's sources and data, and those of its seeds, without repetition.
std::vector<std::string> words_of(const Target& target);

}  // namespace tandem::fuzz
