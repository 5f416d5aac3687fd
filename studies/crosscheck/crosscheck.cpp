#include "studies/crosscheck/crosscheck.h"

#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/peak_rss.h"
#include "runtime/host/loss.h"
#include "studies/crosscheck/comparison.h"
#include "studies/step/executed_step.h"
#include "traces/timeline_file.h"

namespace tandem::studies {

/// What the simulation is held against, and the DAG of both.
class Crosscheck::MeasuredSide {
 public:
  virtual ~MeasuredSide() = default;
  virtual const Dag& dag() const = 0;
  virtual void measure(Progress*) {}
  virtual const Timeline& timeline() const = 0;
  virtual StepResult result() const = 0;
  /// Returns by rank what its memory held at most; nothing where nobody can tell.
  virtual std::vector<Bytes> peaks() const { return {}; }
  virtual std::string executed_on() const = 0;
  virtual std::optional<std::size_t> verified_collectives() const { return std::nullopt; }
  virtual std::optional<double> loss() const { return std::nullopt; }
};

/// Executed here and now.
class Crosscheck::StepOfThisMachine final : public MeasuredSide {
 public:
  StepOfThisMachine(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, bool hops)
      : step_(scenario, file, backend, period_of(scenario), hops) {}

  const Dag& dag() const override { return step_.dag(); }
  void measure(Progress* progress) override {
    kinds_ = step_.verify_collectives();
    step_.execute(progress);
  }
  const Timeline& timeline() const override { return step_.timeline(); }
  StepResult result() const override { return step_.result(); }
  std::vector<Bytes> peaks() const override {
    std::vector<Bytes> peaks;
    for (RankIndex rank = 0; rank < dag().ranks.size(); ++rank) {
      const std::optional<Bytes> arena = step_.site().arena(rank);
      if (!arena) return {};
      peaks.push_back(*arena);
    }
    return peaks;
  }
  std::string executed_on() const override { return step_.site().description(); }
  std::optional<std::size_t> verified_collectives() const override { return kinds_; }
  std::optional<double> loss() const override { return mean_loss(step_.site().numbers()); }

 private:
  ExecutedStep step_;
  std::size_t kinds_ = 0;
};

/// Executed elsewhere, by tandem-run.
class Crosscheck::StepOfAFile final : public MeasuredSide {
 public:
  StepOfAFile(const Scenario& scenario, const std::string& file, const std::string& measured, bool hops)
      : precision_(scenario.training.precision),
        dag_(lower_to_carry(scenario, file, hops)),
        measured_(read_timeline(measured, dag_)) {
    if (timeline().makespan() <= 0) throw InputError({measured, 0, 0}, "takes no time, expected the timeline of a step");
  }

  const Dag& dag() const override { return dag_; }
  const Timeline& timeline() const override { return measured_.timeline; }
  StepResult result() const override {
    const std::string& where = measured_.executed_on;
    return summarize(dag_, timeline(), precision_,
                     {.backend = where.substr(0, where.find(',')), .folded = false, .wall = 0, .peak_rss = peak_rss()});
  }
  std::string executed_on() const override { return measured_.executed_on; }

 private:
  DType precision_;
  Dag dag_;
  MeasuredTimeline measured_;
};

Crosscheck::Crosscheck(const Scenario& scenario, const std::string& file, const CrosscheckOptions& options) {
  const bool hops = options.collectives == Collectives::steps;
  if (options.measured.empty())
    step_ = std::make_unique<StepOfThisMachine>(scenario, file, options.backend, hops);
  else
    step_ = std::make_unique<StepOfAFile>(scenario, file, options.measured, hops);
  simulated_ = simulate(dag(), options.collectives, {}, shown_in(options.progress, "simulating")).timeline;
  step_->measure(options.progress);

  result_ = step_->result();
  result_.warnings = scenario.warnings;
  result_.run.collectives = name_of(options.collectives);
  comparison_ = compare(dag(), simulated_, measured(), step_->peaks());
}

Crosscheck::~Crosscheck() = default;

const Dag& Crosscheck::dag() const { return step_->dag(); }
const Timeline& Crosscheck::measured() const { return step_->timeline(); }
std::string Crosscheck::executed_on() const { return step_->executed_on(); }
std::optional<double> Crosscheck::loss() const { return step_->loss(); }
std::optional<std::size_t> Crosscheck::verified_collectives() const { return step_->verified_collectives(); }

}  // namespace tandem::studies
