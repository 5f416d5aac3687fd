// Launch scripts: bash, and arguments that are no script; Python that builds a configuration.
#include "scenarios/interop/torchtitan/python_recipe.h"
#include "scenarios/shell/evaluate.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

void follow_python(const std::string& bytes) {
  for (const std::string& function : scenarios::python_functions(bytes, "input.py"))
    scenarios::evaluate_python_function(bytes, "input.py", function);
}

constexpr const char* recipe = R"(from dataclasses import dataclass

def common(steps=1000):
    return Trainer.Config(steps=steps, lr=3e-4, mixed=[1, 2.5, "x", None, True], deep={"a": (1, 2)})

def llama3_8b() -> Trainer.Config:
    config = common(steps=10 * 2)
    config.training.seq_len = 8192
    config.model = model_registry("8B", attn_backend="flex")
    return config
)";

[[maybe_unused]] const Registered programs({
    {.name = "shell",
     .read = [](const std::string& bytes) { scenarios::shell::evaluate_script(bytes, "input.sh", {}); },
     .seeds =
         [] {
           std::vector<std::string> seeds = repository_files("tests/scenarios/megatron", ".sh");
           seeds.push_back(repository_file("tests/studies/samples/megatron.sh"));
           return seeds;
         },
     .words_of = {"scenarios/shell"}},
    {.name = "arguments",
     .read = [](const std::string& bytes) { scenarios::shell::evaluate_arguments(bytes, "input.args", {}); },
     .seeds = [] { return std::vector<std::string>{"--num-layers 32 \\\n  --seq-length ${SEQ:-4096} # tokens\n--fp8 'a b'"}; },
     .words_of = {"scenarios/shell"}},
    {.name = "python",
     .read = follow_python,
     .seeds = [] { return std::vector<std::string>{recipe}; },
     .words_of = {"scenarios/interop/torchtitan"}},
});

}  // namespace
}  // namespace tandem::fuzz
