#include "scenarios/lowering/repeated_passes.h"

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "scenarios/lowering/data_parallel.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t lowered_of_kind = 2;  ///< the second shows what the first has for itself

bool is_between_stages(Stream stream) {
  return stream >= Stream::pp_send_forward && stream <= Stream::pp_receive_backward_descending;
}

bool is_compute_kernel(const Task& task) { return task.stream == Stream::compute && !is_communication(task.op); }

bool same_casts(const PassNotes& one, const PassNotes& other) {
  return one.casts_before == other.casts_before && one.casts_after == other.casts_after;
}

/// Whether micro-batches differ in nothing but their tokens, as far as the scenario tells.
bool may_repeat(const Context& context, std::span<const Action> actions) {
  const TrainingSpec& training = context.scenario.training;
  // Maxima that are reduced after some casts are those of whichever passes took turns.
  const bool shares_casts = context.scenario.reduces_amax() && std::ranges::any_of(actions, &Action::beside_next);
  return !training.documents.any() && !context.scenario.parallelism.dynamic_cp && training.offload.activations == 0 &&
         !keeps_slices_of_weights(context) && !shares_casts;
}

std::size_t count_operands(const Dag& dag, const std::vector<TaskId>& tasks) {
  std::size_t count = 0;
  for (const TaskId task : tasks) count += dag.operands_of(task).size();
  return count;
}

}  // namespace

RepeatedPasses::RepeatedPasses(Context& context, PipelineLink& link, std::span<const Action> actions)
    : context_(context), link_(link), actions_(actions), passes_(actions.size()) {
  find_kinds();
  choose_copied();
}

std::unique_ptr<RepeatedPasses> RepeatedPasses::among(Context& context, PipelineLink& link, std::span<const Action> actions) {
  if (!may_repeat(context, actions)) return nullptr;
  std::unique_ptr<RepeatedPasses> passes(new RepeatedPasses(context, link, actions));
  if (std::ranges::none_of(passes->passes_, &Pass::is_copied)) return nullptr;
  return passes;
}

void RepeatedPasses::find_kinds() {
  std::map<std::vector<std::uint32_t>, std::uint32_t> kinds;
  std::set<std::pair<Action::Kind, std::int32_t>> seen;
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const Action& action = actions_[i];
    const bool in_turns = action.beside_next || (i > 0 && actions_[i - 1].beside_next);
    const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
    if (micro_batch >= of_micro_batch_.size()) of_micro_batch_.resize(micro_batch + 1);
    std::vector<std::size_t>& before = of_micro_batch_[micro_batch];
    std::vector<std::uint32_t> key{static_cast<std::uint32_t>(action.kind), static_cast<std::uint32_t>(action.chunk),
                                   in_turns ? 1U : 0U, seen.emplace(action.kind, action.chunk).second ? 1U : 0U};
    for (const std::size_t pass : before) key.push_back(passes_[pass].kind);
    passes_[i].kind = kinds.try_emplace(key, static_cast<std::uint32_t>(kinds.size())).first->second;
    passes_[i].before = before.size();
    before.push_back(i);
  }
  kinds_.resize(kinds.size());
}

void RepeatedPasses::choose_copied() {
  for (Pass& pass : passes_) pass.is_copied = ++kinds_[pass.kind].passes > lowered_of_kind;
  for (const std::vector<std::size_t>& passes : of_micro_batch_) {
    bool is_lowered = false;  // something later
    for (const std::size_t pass : passes | std::views::reverse) {
      is_lowered |= !passes_[pass].is_copied;
      passes_[pass].is_copied = !is_lowered;
      kinds_[passes_[pass].kind].has_copies |= !is_lowered;
    }
  }
}

void RepeatedPasses::look_at(std::size_t last) {
  for (; looked_at_ <= last; ++looked_at_) {
    const Pass& pass = passes_[looked_at_];
    if (pass.is_copied) continue;
    note_what_was_made(looked_at_);
    Kind& kind = kinds_[pass.kind];
    if (!kind.has_copies || kind.lowered == lowered_of_kind) continue;
    Original original = original_of(looked_at_);
    if (kind.lowered++ > 0 && !are_alike(*kind.original, original)) throw PassesDiffer("passes of one kind differ");
    if (kind.lowered == lowered_of_kind) find_orders(original);
    kind.original = std::move(original);
  }
}

template <typename Id>
std::vector<const std::vector<Id>*> RepeatedPasses::by_place(std::size_t action, std::vector<Id> PassNotes::*noted) const {
  std::vector<const std::vector<Id>*> ids{nullptr, &(passes_[action].notes.*noted)};
  const auto& passes = of_micro_batch_[static_cast<std::size_t>(actions_[action].micro_batch)];
  for (std::size_t pass = 0; pass < passes_[action].before; ++pass) ids.push_back(&(passes_[passes[pass]].notes.*noted));
  return ids;
}

void RepeatedPasses::note_what_was_made(std::size_t action) {
  made_.resize(context_.builder.dag().buffers.size());
  const std::vector<BufferId>& buffers = passes_[action].notes.buffers;
  for (std::uint32_t number = 0; number < buffers.size(); ++number)
    made_[buffers[number]] = {static_cast<std::uint32_t>(action), number};
}

RepeatedPasses::Place RepeatedPasses::place_of(BufferId buffer, std::size_t action) const {
  const Made made = made_[buffer];
  if (made.number == no_id || actions_[made.action].micro_batch != actions_[action].micro_batch) return {every, buffer};
  if (made.action == action) return {own, made.number};
  return {earlier + static_cast<std::uint32_t>(passes_[made.action].before), made.number};
}

std::int64_t RepeatedPasses::sequence_of(std::size_t action) const {
  const std::int32_t labelled = std::exchange(context_.micro_batch, actions_[action].micro_batch);
  const std::int64_t sequence = context_.sequence_number();
  context_.micro_batch = labelled;
  return sequence;
}

RepeatedPasses::Original RepeatedPasses::original_of(std::size_t action) const {
  const PassNotes& notes = passes_[action].notes;
  const Dag& dag = context_.builder.dag();
  if (notes.declares) throw PassesDiffer("a pass declares parameters");
  Original original;
  original.action = action;
  for (const BufferId buffer : notes.buffers) original.bases.push_back(place_of(dag.buffers[buffer].base, action));
  original.operands.reserve(count_operands(dag, notes.tasks));
  for (const TaskId task : notes.tasks) {
    if (dag.tasks[task].micro_batch != actions_[action].micro_batch) throw PassesDiffer("a pass has tasks of another");
    for (const Operand& operand : dag.operands_of(task)) original.operands.push_back(place_of(operand.buffer, action));
  }
  const std::int64_t sequence = sequence_of(action);
  for (const std::size_t input : notes.inputs)
    original.inputs.push_back({place_of(dag.inputs[input].buffer, action), dag.inputs[input].first_sequence - sequence});
  return original;
}

void RepeatedPasses::find_orders(Original& original) {
  const Dag& dag = context_.builder.dag();
  const std::int32_t micro_batch = actions_[original.action].micro_batch;
  Accesses& accesses = accesses_[micro_batch];
  std::vector<TaskId> waits;
  const auto note = [&](TaskId id, std::size_t action) {
    TaskOrder order;
    const std::span<const Operand> operands = dag.operands_of(id);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Buffer buffer = dag.buffers[operands[i].buffer];
      const Place base = place_of(buffer.base, action);
      if (base.of == every) continue;
      order.operands |= 1U << i;
      const std::size_t first = base.of == own ? accesses.first.back() : accesses.first[base.of - earlier];
      accesses.order.note(first + base.number,
                          {.task = id,
                           .begin = buffer.offset,
                           .end = buffer.offset + buffer.shape.elements(),
                           .stream = dag.tasks[id].stream,
                           .writes = operands[i].access() != Access::read},
                          waits);
    }
    return order;
  };
  const auto tasks = by_place(original.action, &PassNotes::tasks);
  const auto task_place = [&](TaskId task) {
    for (std::uint32_t of = own;; ++of) {
      const auto found = std::ranges::lower_bound(*tasks.at(of), task);
      if (found != tasks[of]->end() && *found == task)
        return TaskPlace{of, static_cast<std::uint32_t>(found - tasks[of]->begin())};
    }
  };
  const std::vector<std::size_t>& passes = of_micro_batch_[static_cast<std::size_t>(micro_batch)];
  for (std::size_t pass = accesses.first.size(); pass <= passes_[original.action].before; ++pass) {
    const PassNotes& notes = passes_[passes[pass]].notes;
    accesses.first.push_back(accesses.buffers);
    accesses.buffers += notes.buffers.size();
    for (std::size_t i = 0; i < notes.buffers.size(); ++i) accesses.order.add_buffer();
    for (const TaskId id : notes.tasks) {
      waits.clear();
      TaskOrder order = note(id, passes[pass]);
      if (passes[pass] != original.action) continue;
      for (const TaskId before : waits) original.waits.push_back(task_place(before));
      order.waits_end = original.waits.size();
      original.orders.push_back(order);
    }
  }
}

bool RepeatedPasses::are_alike(const Original& one, const Original& other) const {
  const Dag& dag = context_.builder.dag();
  const PassNotes &notes = passes_[one.action].notes, &others = passes_[other.action].notes;
  const auto same_task = [&](TaskId a, TaskId b) {
    Task task = dag.tasks[a];
    const Task& another = dag.tasks[b];
    if ((task.group == no_id) != (another.group == no_id)) return false;
    if (task.group != no_id && dag.groups[task.group] != dag.groups[another.group]) return false;
    task.first_operand = another.first_operand;
    task.group = another.group;
    task.micro_batch = another.micro_batch;
    const auto accesses = [&](TaskId of) { return dag.operands_of(of) | std::views::transform(&Operand::access); };
    return task == another && std::ranges::equal(accesses(a), accesses(b));
  };
  const auto same_buffer = [&](BufferId a, BufferId b) {
    Buffer buffer = dag.buffers[a];
    const Buffer another = dag.buffers[b];
    buffer.base = another.base;
    return buffer == another;
  };
  const auto same_input = [&](std::size_t a, std::size_t b) {
    InputShard input = dag.inputs[a];
    const InputShard& another = dag.inputs[b];
    input.buffer = another.buffer;
    input.first_sequence = another.first_sequence;
    return input == another;
  };
  return one.bases == other.bases && one.operands == other.operands && one.inputs == other.inputs &&
         notes.turns == others.turns && notes.orders == others.orders && notes.holds == others.holds &&
         notes.gradients == others.gradients && notes.labels == others.labels &&
         (!context_.scenario.reduces_amax() || same_casts(notes, others)) &&
         std::ranges::equal(notes.tasks, others.tasks, same_task) &&
         std::ranges::equal(notes.buffers, others.buffers, same_buffer) &&
         std::ranges::equal(notes.inputs, others.inputs, same_input);
}

/// What the original did, turn by turn.
class RepeatedPasses::Copy : public PassInTurns {
 public:
  Copy(RepeatedPasses& passes, std::size_t action)
      : context_(passes.context_),
        link_(passes.link_),
        original_(*passes.kinds_[passes.passes_[action].kind].original),
        noted_(passes.passes_[original_.action].notes),
        micro_batch_(passes.actions_[action].micro_batch),
        sequence_(passes.sequence_of(action)),
        made_(passes.passes_[action].notes.buffers),
        tasks_(passes.passes_[action].notes.tasks),
        buffers_(passes.by_place(action, &PassNotes::buffers)),
        tasks_by_place_(passes.by_place(action, &PassNotes::tasks)) {
    made_.reserve(noted_.buffers.size());
    tasks_.reserve(noted_.tasks.size());
  }

  bool is_done() const override { return turn_ == noted_.turns.size(); }
  void take_piece() override { take_turn(); }

  void take_turn() override {
    if (is_done()) return;
    if (turn_ == 0) begin();
    do_what_was_asked();
    for (; gradient_ < noted_.gradients.size() && noted_.gradients[gradient_].when.turn == turn_; ++gradient_)
      give_gradient(noted_.gradients[gradient_]);
    make_buffers(noted_.turns[turn_].buffers);
    add_tasks(noted_.turns[turn_].tasks);
    if (++turn_ == noted_.turns.size()) end();
  }

 private:
  Context& context_;
  PipelineLink& link_;
  const Original& original_;
  const PassNotes& noted_;
  const std::int32_t micro_batch_;
  const std::int64_t sequence_;
  std::vector<BufferId>& made_;
  std::vector<TaskId>& tasks_;
  const std::vector<const std::vector<BufferId>*> buffers_;
  const std::vector<const std::vector<TaskId>*> tasks_by_place_;
  std::vector<TaskId> waits_;  ///< of one task
  // What comes next, of the original's.
  std::size_t turn_ = 0, operand_ = 0, wait_ = 0, input_ = 0, order_ = 0, hold_ = 0, gradient_ = 0;

  BufferId at(const Place& place) const { return place.of == every ? place.number : (*buffers_[place.of])[place.number]; }

  void begin() const {
    if (context_.scenario.reduces_amax() && context_.casts != noted_.casts_before)
      throw PassesDiffer("passes of one kind begin with other casts");
  }

  void end() const {
    if (context_.scenario.reduces_amax()) context_.casts = noted_.casts_after;
    label(noted_.labels);
  }

  void label(const PassLabels& labels) const {
    context_.begin_micro_batch(micro_batch_);
    context_.phase = labels.phase;
    context_.layer = labels.layer;
    context_.chunk = labels.chunk;
  }

  void make_buffers(std::size_t count) {
    DagBuilder& builder = context_.builder;
    while (made_.size() < count) {
      const std::size_t number = made_.size();
      const Place base = original_.bases[number];
      const auto id = static_cast<BufferId>(builder.dag().buffers.size());
      made_.push_back(id);  // it may be its own base
      builder.buffer_like(noted_.buffers[number], at(base));
      if (input_ == original_.inputs.size() || original_.inputs[input_].buffer != Place{own, static_cast<std::uint32_t>(number)})
        continue;
      InputShard input = builder.dag().inputs[noted_.inputs[input_]];
      input.buffer = id;
      input.first_sequence = sequence_ + original_.inputs[input_++].sequence;
      builder.dag().inputs.push_back(input);
    }
  }

  void add_tasks(std::size_t count) {
    DagBuilder& builder = context_.builder;
    std::array<BufferId, most_operands> operands;
    while (tasks_.size() < count) {
      const TaskId like = noted_.tasks[tasks_.size()];
      const std::size_t number = builder.dag().operands_of(like).size();
      for (std::size_t i = 0; i < number; ++i) operands[i] = at(original_.operands[operand_++]);
      const TaskOrder& order = original_.orders[tasks_.size()];
      waits_.clear();
      for (; wait_ < order.waits_end; ++wait_) {
        const TaskPlace place = original_.waits[wait_];
        waits_.push_back((*tasks_by_place_[place.of])[place.number]);
      }
      const TaskId id = builder.task_like(like, micro_batch_, {operands.data(), number}, {waits_, order.operands});
      tasks_.push_back(id);
      const Task& task = builder.dag().tasks[id];
      if (is_compute_kernel(task)) context_.wait_for_held(id);
      if (is_between_stages(task.stream)) task.op == OpKind::receive ? link_.receives(id) : link_.sends(id);
      do_what_was_asked();
    }
  }

  /// When there were as many tasks as there are.
  void do_what_was_asked() {
    const auto is_now = [&](const PassNotes::When& when) { return when.turn == turn_ && when.tasks == tasks_.size(); };
    for (; order_ < noted_.orders.size() && is_now(noted_.orders[order_].when); ++order_)
      context_.start_after_compute(tasks_[noted_.orders[order_].task]);
    for (; hold_ < noted_.holds.size() && is_now(noted_.holds[hold_].when); ++hold_)
      context_.hold_compute_until(tasks_[noted_.holds[hold_].task]);
  }

  void give_gradient(const PassNotes::Gradient& gradient) {
    make_buffers(gradient.when.buffers);
    add_tasks(gradient.when.tasks);
    label(gradient.labels);
    context_.gave_gradient(gradient.parameter);
  }
};

std::unique_ptr<PassInTurns> RepeatedPasses::copy_of(std::size_t action) {
  if (!passes_[action].is_copied) return nullptr;
  return std::make_unique<Copy>(*this, action);
}

}  // namespace tandem::scenarios
