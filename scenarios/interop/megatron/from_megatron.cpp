#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/interop/launch/launch.h"
#include "scenarios/interop/megatron/megatron_known.h"
#include "scenarios/interop/megatron/megatron_reader.h"

namespace tandem::scenarios {

MegatronReader::MegatronReader(Launch launch, const std::string& file, std::int64_t gpus)
    : arguments_(std::move(launch), file),
      file_(file),
      gpus_(gpus),
      out_{.document = make_node(YamlNode::Kind::mapping, {.file = file}), .ignored = {}} {}

Imported MegatronReader::all() {
  check_program();
  for (const char* name : {"model", "parallelism", "training"}) section(name);  // none comes later, so that references stay
  out_.assumed = arguments_.launch().assumed;
  out_.notes = arguments_.launch().notes;
  sizes();
  model();
  attention();
  if (arguments_.integer("num-experts", 0) > 0) experts();
  mesh();
  pipeline();
  data_parallel();
  training();
  recompute();
  for (const char* means_nothing : {"use-mcore-models", "moe-grouped-gemm", "no-gradient-accumulation-fusion"})
    arguments_.has(means_nothing);
  gpus();
  leftovers();
  return std::move(out_);
}

void MegatronReader::check_program() {
  const std::string& program = arguments_.launch().program;
  for (const char* other : {"bert", "t5", "vision", "vlm", "multimodal", "retro", "ict", "biencoder"})
    if (program.find(other) != std::string::npos)
      throw InputError({.file = file_}, program +
                                            " trains another kind of model; expected one that trains a decoder-only "
                                            "language model, as pretrain_gpt.py does");
  const bool hybrid = program.find("mamba") != std::string::npos || program.find("hybrid") != std::string::npos;
  if (hybrid && hybrid_pattern().empty())
    throw InputError({.file = file_},
                     program + " has layers of several kinds; expected --hybrid-override-pattern, which says which");
}

void MegatronReader::fail(const std::string& name, const std::string& expected) {
  throw InputError(arguments_.place(name),
                   "--" + name + " " + arguments_.text(name) + " is not something a scenario expresses; expected " + expected);
}

void MegatronReader::note(const std::string& name, const std::string& sentence) {
  out_.notes.push_back(placed(arguments_.place(name), "--" + name + ": " + sentence));
}

void MegatronReader::miss(const std::string& field, const std::string& sentence) {
  out_.missing.push_back({.field = field, .place = {.file = file_}, .sentence = sentence});
}

std::int64_t MegatronReader::positive(const char* name, std::int64_t fallback) {
  const std::int64_t value = arguments_.integer(name, fallback);
  if (value < 1)
    throw InputError(arguments_.place(name), "--" + std::string(name) + " is " + std::to_string(value) + ", expected 1 or more");
  return value;
}

/// What the launcher starts, unless the user says otherwise.
void MegatronReader::gpus() {
  const Launch& launch = arguments_.launch();
  if (gpus_ > 0 || launch.gpus == 0) return;
  const std::int64_t replica = tp_ * pp_ * cp_;
  if (launch.gpus % replica != 0)
    throw InputError(launch.gpus_place, launch.gpus_stated + " starts " + std::to_string(launch.gpus) +
                                            " GPUs, which is no multiple of " + named(Axis::tp, tp_) + " * " +
                                            named(Axis::pp, pp_) + " * " + named(Axis::cp, cp_) + " = " +
                                            std::to_string(replica) + "; expected --gpus");
  const std::int64_t of_experts =
      arguments_.integer("expert-model-parallel-size", 1) * arguments_.integer("expert-tensor-parallel-size", tp_) * pp_;
  if (arguments_.integer("num-experts", 0) > 0 && of_experts > 0 && launch.gpus % of_experts != 0)
    throw InputError(launch.gpus_place, launch.gpus_stated + " starts " + std::to_string(launch.gpus) +
                                            " GPUs, which is no multiple of the experts' ep * etp * pp = " +
                                            std::to_string(of_experts) + "; expected --gpus");
  put(section("parallelism"), name_of(Axis::dp), launch.gpus / replica, launch.gpus_place);
}

/// What nothing asked for: of no consequence, of some that the scenario lacks, or of another model.
void MegatronReader::leftovers() {
  std::vector<std::string> strange;
  for (const std::string& name : arguments_.unknown()) {
    const ArgumentEffect effect = effect_of_argument(name);
    switch (effect.kind) {
      case ArgumentEffect::Kind::none:
        out_.ignored.push_back("--" + name);
        break;
      case ArgumentEffect::Kind::changes:
        note(name, effect.why + "; the scenario does not have this");
        break;
      case ArgumentEffect::Kind::forbids:
        throw InputError(arguments_.place(name), "--" + name + " is not something a scenario expresses: " + effect.why);
      case ArgumentEffect::Kind::unknown:
        strange.push_back("--" + name);
    }
  }
  if (!strange.empty())
    out_.notes.push_back(placed({.file = file_}, "arguments that are not known here, and left out: " + joined(strange)));
  for (std::string& sentence : arguments_.empty_extras()) out_.assumed.push_back(std::move(sentence));
}

bool MegatronReader::is_of_slime() {
  return arguments_.has("hf-checkpoint") || arguments_.has("actor-num-nodes") || arguments_.has("rollout-batch-size");
}

/// Reads arguments of Megatron-Core's pretrain_gpt.py: a list of them, a shell script that starts it, or a test's YAML.
Imported from_megatron(const ForeignText& from) { return MegatronReader(read_launch(from), from.file, from.gpus).all(); }

}  // namespace tandem::scenarios
