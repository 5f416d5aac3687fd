#include "cli/slurm_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "runtime/base/printable.h"
#include "studies/slurm/slurm_programs.h"

namespace tandem::cli {
namespace {

constexpr int most_tasks = 4096;

}  // namespace

void SlurmOptions::add_to(CLI::App& command, const std::string& what) {
  constexpr int default_tasks = 8;
  const auto set_tasks = [this](const std::string& text) {
    tasks_ = default_tasks;
    if (text == "true") return;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, tasks_);
    if (read.ec != std::errc{} || read.ptr != end || tasks_ < 1 || tasks_ > most_tasks)
      throw CLI::ValidationError("'" + text + "', expected how many tasks the array has, from 1 to " +
                                 std::to_string(most_tasks));
  };
  CLI::Option* slurm = command
                           .add_flag("--slurm", slurm_,
                                     "have " + what + " simulated by the tasks of a Slurm job array, " +
                                         std::to_string(default_tasks) + " or --slurm=N of them, and wait for them")
                           ->each(set_tasks);
  command.add_option("--sbatch", sbatch_, "what sbatch is told besides: --sbatch='--partition=cpu --time=1:00:00'")
      ->allow_extra_args(false)
      ->take_all()
      ->needs(slurm);
}

std::unique_ptr<SlurmPool> SlurmOptions::pool(const std::string& name, const std::string& folder, int jobs) const {
  if (tasks_ == 0) return nullptr;
  std::vector<std::string> arguments;
  for (const std::string& text : sbatch_)
    for (std::string& word : sbatch_words(text)) arguments.push_back(std::move(word));
  return std::make_unique<SlurmPool>(
      SlurmSettings{.name = name,
                    .folder = folder,
                    .program = std::filesystem::read_symlink("/proc/self/exe").string(),
                    .tasks = static_cast<std::size_t>(tasks_),
                    .jobs = jobs,
                    .arguments = std::move(arguments),
                    .told = [](const std::string& sentence) { std::cerr << "tandem: " << printable(sentence) << std::endl; }});
}

}  // namespace tandem::cli
