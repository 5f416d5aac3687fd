#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/interop/interop.h"
#include "scenarios/shell/evaluate.h"

namespace tandem::scenarios {

/// What starts a training program, and how: the words of its command.
struct Launch {
  std::vector<shell::Text> words;  ///< the program's arguments, and values that may hold marks of what is unknown
  std::string program;             ///< "pretrain_gpt.py"; empty where the file has arguments alone
  std::int64_t gpus = 0;           ///< that the launcher starts; 0: not known
  Place gpus_place = {};
  std::string gpus_stated = {};  ///< "--nnodes 2, --nproc_per_node 8"
  shell::Unknowns unknowns = {};
  std::vector<std::string> assumed = {};  ///< sentences
  std::vector<std::string> notes = {};
  std::vector<std::string> missing = {};  ///< sentences on what the script reads and is not there
};

/// Finds the arguments of a training program in a shell script, in a list of arguments, or in YAML with MODEL_ARGS. Throws
/// InputError where it starts none.
Launch read_launch(const ForeignText& from);

/// Of a test's or model zoo's YAML: the arguments are a mapping at MODEL_ARGS, variables at ENV_VARS.
bool has_model_args(const std::string& text);
Launch read_yaml_launch(const ForeignText& from);

/// Returns what Slurm tells a job of its nodes, by the #SBATCH lines of its script: "SLURM_NNODES=4".
std::vector<std::string> slurm_variables(const std::string& script);

}  // namespace tandem::scenarios
