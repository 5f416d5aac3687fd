// Prints what a training step waits for: the communication that no computation hides, by parallel axis, and the pipeline's
// bubble.
//
//   exposed SCENARIO.yaml [PATH=VALUE]...        exposed llama3-405b-16k.yaml training.overlap.tp=true
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "scenarios/reading/load.h"
#include "studies/step/simulated_step.h"

namespace {

void print_part(const char* name, tandem::Seconds time, tandem::Seconds step) {
  std::printf("%-8s %.17g s  %5.1f %%\n", name, time, 100 * time / step);
}

}  // namespace

int main(int argc, char** argv) {
  using tandem::Axis;
  if (argc < 2) {
    std::fprintf(stderr, "usage: exposed SCENARIO.yaml [PATH=VALUE]...\n");
    return 2;
  }
  try {
    const std::vector<std::string> overrides(argv + 2, argv + argc);
    const tandem::scenarios::Scenario scenario = tandem::scenarios::load_scenario(argv[1], overrides);
    const bool folded = true;  // one rank of each class of equal ranks is simulated
    const tandem::studies::StepResult result = tandem::studies::simulate_step(scenario, folded).result;

    print_part("step", result.step_time, result.step_time);
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp})
      print_part(name_of(axis).data(), result.parts.exposed_on(axis), result.step_time);
    print_part("bubble", result.parts.bubble, result.step_time);
    return 0;
  } catch (const std::exception& error) {  // an InputError's sentence begins with file:line:column
    std::fprintf(stderr, "exposed: %s\n", error.what());
    return 1;
  }
}
