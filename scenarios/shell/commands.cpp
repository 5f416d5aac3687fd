#include <algorithm>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"
#include "scenarios/shell/patterns.h"

namespace tandem::scenarios::shell {
namespace {

/// A condition for messages.
std::string described(const Command& command, std::string_view as) {
  return std::string(as) + " in line " + std::to_string(command.place.line);
}

}  // namespace

Unknown condition_unknown(const std::string& described, const std::string& reason, const Place& place, const Unknowns& unknowns) {
  Unknown unknown{.kind = Unknown::Kind::condition, .what = described, .place = place};
  for (const Unknown* one : unknowns.all_of(reason)) {
    if (unknown.setting.empty()) unknown.setting = one->setting;
    if (one->kind == Unknown::Kind::unset && unknown.what.find(one->what) == std::string::npos)
      unknown.what += ", of " + one->what;
  }
  return unknown;
}

void Interpreter::count(const Place& place, std::int64_t steps) {
  steps_ += steps;
  if (steps_ > most_steps) throw InputError(place, "the script takes more than 200,000 steps, expected one that starts training");
}

void Interpreter::assume(const std::string& sentence) {
  if (std::ranges::find(out_.assumed, sentence) == out_.assumed.end()) out_.assumed.push_back(sentence);
}

void Interpreter::run_script(std::string_view text, const Place& from) {
  if (++depth_ > deepest_call) throw InputError(from, "scripts, functions and eval call each other more than 40 deep");
  const std::shared_ptr<Command> script = parse_script(text, from);
  run(*script);
  if (flow_ == Flow::left_function) flow_ = Flow::on;
  --depth_;
}

Truth Interpreter::run(const Command& command) {
  count(command.place);
  switch (command.kind) {
    case Command::Kind::simple:
      return run_simple(command);
    case Command::Kind::sequence:
      return run_sequence(command);
    case Command::Kind::both:
    case Command::Kind::either: {
      const Truth left = run(*command.children[0]);
      if (flow_ != Flow::on) return left;
      const Truth enough = command.kind == Command::Kind::both ? Truth::no : Truth::yes;
      if (left == enough) return left;
      if (left != Truth::open) return run(*command.children[1]);
      return run_ways({command.children[1].get(), nullptr}, described(command, "whether a command succeeds"), command.place);
    }
    case Command::Kind::negation:
      return opposite(run(*command.children[0]));
    case Command::Kind::pipeline:
      return run_pipeline(command);
    case Command::Kind::conditional:
      return run_conditional(command);
    case Command::Kind::choice:
      return run_choice(command);
    case Command::Kind::iteration:
      return run_iteration(command);
    case Command::Kind::loop:
      return run_loop(command);
    case Command::Kind::subshell:
      return run_copy(*command.children[0]);
    case Command::Kind::function:
      functions_[command.words[0].plain()] = command.children[0];
      return Truth::yes;
    case Command::Kind::test:
      return test(command.words, command.place);
    case Command::Kind::arithmetic: {
      std::string unknown;
      const WordPart part{.kind = WordPart::Kind::arithmetic, .text = command.text, .place = command.place};
      const std::string value = arithmetic_text(part);
      if (!Unknowns::has(value)) return truth(value != "0");
      open_reason_ = value;
      return Truth::open;
    }
  }
  return Truth::open;
}

Truth Interpreter::run_sequence(const Command& command) {
  Truth last = Truth::yes;
  for (const auto& child : command.children) {
    last = run(*child);
    if (flow_ != Flow::on) break;
  }
  return last;
}

Truth Interpreter::run_conditional(const Command& command) {
  for (std::size_t i = 0; i + 1 < command.children.size(); i += 2) {
    open_reason_.clear();
    const Truth condition = run(*command.children[i]);
    if (flow_ != Flow::on) return condition;
    if (condition == Truth::yes) return run(*command.children[i + 1]);
    if (condition == Truth::no) continue;
    // The other way is what follows: the rest of the conditions, or the last body.
    Command rest{.kind = Command::Kind::conditional, .place = command.place};
    rest.children.assign(command.children.begin() + static_cast<std::ptrdiff_t>(i) + 2, command.children.end());
    const Place place = command.children[i]->children.empty() ? command.place : command.children[i]->children[0]->place;
    return run_ways({command.children[i + 1].get(), rest.children.empty() ? nullptr : &rest}, "the condition", place);
  }
  if (command.children.size() % 2 == 1) return run(*command.children.back());
  return Truth::yes;
}

Truth Interpreter::run_choice(const Command& command) {
  const std::string text = expand_text(command.words[0]);
  std::vector<const Command*> open;
  for (std::size_t i = 0; i < command.patterns.size(); ++i) {
    for (const Word& word : command.patterns[i]) {
      const std::string pattern = expand_pattern(word);
      if (pattern == "*" || (!Unknowns::has(text) && !Unknowns::has(pattern) && matches_pattern(text, pattern))) {
        if (open.empty()) return run(*command.children[i]);
        open.push_back(command.children[i].get());
        open_reason_ = text;
        return run_ways(open, "the case", command.place);
      }
      if (Unknowns::has(text) || Unknowns::has(pattern)) {
        if (open.empty() || open.back() != command.children[i].get()) open.push_back(command.children[i].get());
      }
    }
  }
  if (open.empty()) return Truth::yes;
  open.push_back(nullptr);
  open_reason_ = text;
  return run_ways(open, "the case", command.place);
}

bool Interpreter::turn_is_over() {
  if (flow_ == Flow::next_turn) flow_ = Flow::on;
  if (flow_ == Flow::on) return false;
  if (flow_ == Flow::left_loop) flow_ = Flow::on;
  return true;
}

Truth Interpreter::run_iteration(const Command& command) {
  if (command.words.empty()) {  // for ((begin; condition; step))
    const std::string& text = command.text;
    const std::size_t first = text.find(';'), second = text.find(';', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) throw InputError(command.place, "for ((..)) has no three parts, expected two semicolons");
    std::string unknown;
    arithmetic(text.substr(0, first), command.place, unknown);
    const std::string condition = text.substr(first + 1, second - first - 1);
    while (unknown.empty()) {
      count(command.place);
      const bool always = condition.find_first_not_of(" \t\n") == std::string::npos;
      const auto holds = always ? std::optional<std::int64_t>(1) : arithmetic(condition, command.place, unknown);
      if (!holds) break;
      if (*holds == 0) return Truth::yes;
      run(*command.children[0]);
      if (turn_is_over()) return Truth::yes;
      arithmetic(text.substr(second + 1), command.place, unknown);
    }
    open_reason_ = unknown;
    return run_ways({command.children[0].get(), nullptr}, "the loop", command.place);
  }
  const std::string name = command.words[0].plain();
  if (!is_name(name)) throw InputError(command.place, "`for` is followed by no name, expected a variable's");
  const std::vector<Text> values = expand_words({command.words.begin() + 1, command.words.end()});
  for (const Text& value : values) {
    variables().set(name, {.items = {value}});
    run(*command.children[0]);
    if (turn_is_over()) break;
  }
  return Truth::yes;
}

Truth Interpreter::run_loop(const Command& command) {
  for (;;) {
    count(command.place);
    open_reason_.clear();
    Truth condition = run(*command.children[0]);
    if (flow_ != Flow::on) return condition;
    if (command.until) condition = opposite(condition);
    if (condition == Truth::no) return Truth::yes;
    // A loop over the script's arguments: nobody gave it any.
    const auto unknowns = out_.unknowns.all_of(open_reason_);
    if (condition == Truth::open &&
        std::ranges::any_of(unknowns, [](const Unknown* one) { return one->what == arguments_in_number; })) {
      assume("the script gets no arguments (--env 1=VALUE)");
      return Truth::yes;
    }
    if (condition == Truth::open) {
      const Truth result = run_ways({command.children[1].get(), nullptr}, "the loop", command.place);
      turn_is_over();
      return result;
    }
    run(*command.children[1]);
    if (turn_is_over()) return Truth::yes;
  }
}

Truth Interpreter::run_pipeline(const Command& command) {
  Truth last = Truth::open;
  for (const auto& child : command.children) last = run_copy(*child);
  return last;
}

Truth Interpreter::run_copy(const Command& command) {
  count_values(command.place, variables().values());
  const Variables before = variables();
  const Truth result = run(command);
  variables() = before;
  flow_ = Flow::on;
  return result;
}

Truth Interpreter::run_ways(const std::vector<const Command*>& ways, const std::string& described, const Place& place) {
  const Unknown condition =
      condition_unknown(described + " in line " + std::to_string(place.line), open_reason_, place, out_.unknowns);
  const Variables before = variables();
  const std::string outer = std::exchange(open_condition_, condition.sentence());
  std::vector<Variables> after;
  for (const Command* way : ways) {
    count_values(place, before.values());
    variables() = before;
    flow_ = Flow::on;
    const std::size_t started = out_.started.size();
    if (way != nullptr) run(*way);
    if (flow_ == Flow::ended) {  // a script that only complains and stops is not meant to
      out_.started.resize(started);
      continue;
    }
    after.push_back(variables());
  }
  open_condition_ = outer;
  flow_ = Flow::on;
  if (after.empty()) {
    variables() = before;
    end(place);
    return Truth::open;
  }
  variables() = after.front();
  variables().join(std::span(after).subspan(1), condition, out_.unknowns);
  return Truth::open;
}

const Variable* Interpreter::known_to_copy(const std::string& name, const Place& place) {
  const Variable* known = variables().find(name);
  if (known != nullptr) count_values(place, known->values());
  return known;
}

void Interpreter::append(const Assignment& assignment) {
  const Variable* known = known_to_copy(assignment.name, assignment.place);
  const std::string text = expand_text(assignment.values[0]);
  Variable variable = known == nullptr ? Variable{} : *known;
  if (variable.items.empty()) variable.items.push_back({"", assignment.place});
  variable.items.front().text += text;
  variable.items.front().is_gap = false;
  check_size(variable.items.front().text.size(), assignment.place);
  variables().set(assignment.name, std::move(variable));
}

void Interpreter::assign_array(const Assignment& assignment) {
  const Variable* known = known_to_copy(assignment.name, assignment.place);
  Variable variable{.is_array = true, .is_keyed = known != nullptr && known->is_keyed};
  if (assignment.appends && known != nullptr) variable = *known;
  variable.is_array = true;
  for (std::size_t i = 0; i < assignment.values.size(); ++i) {
    const Word& word = assignment.values[i];
    if (const auto& key = assignment.keys[i]) {
      std::string name = expand_text(*key);
      std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
      std::string unknown;
      if (variable.is_keyed) {
        variable.keyed[name] = {expand_text(word), word.place};
      } else if (const std::size_t index = index_of(name, word.place, unknown); unknown.empty() && index < most_items) {
        if (variable.items.size() <= index) variable.items.resize(index + 1, {"", word.place, true});
        variable.items[index] = {expand_text(word), word.place};
      }
      continue;
    }
    std::ranges::move(expand_words({word}), std::back_inserter(variable.items));
    if (variable.items.size() > most_items) throw InputError(assignment.place, "an array has no more than 100,000 values here");
  }
  variables().set(assignment.name, std::move(variable));
}

void Interpreter::assign_element(const Assignment& assignment) {
  const Variable* known = known_to_copy(assignment.name, assignment.place);
  Variable variable = known == nullptr ? Variable{.is_array = true} : *known;
  const Text value{expand_text(assignment.values[0]), assignment.place};
  std::string key = expand_text(*assignment.key);
  if (variable.is_keyed) {
    std::erase_if(key, [](char c) { return c == '"' || c == '\''; });
    variable.keyed[key] = value;
  } else {
    std::string unknown;
    const std::size_t index = index_of(key, assignment.place, unknown);
    if (!unknown.empty() || index >= most_items) return;
    if (variable.items.size() <= index) variable.items.resize(index + 1, {"", assignment.place, true});
    variable.items[index] = value;
    variable.is_array = true;
  }
  variables().set(assignment.name, std::move(variable));
}

void Interpreter::assign(const Assignment& assignment) {
  if (assignment.is_array) return assign_array(assignment);
  if (assignment.key) return assign_element(assignment);
  if (assignment.appends) return append(assignment);
  const Place& place = assignment.values[0].place.line > 0 ? assignment.values[0].place : assignment.place;
  Text value{expand_text(assignment.values[0]), place};
  if (Unknowns::is_one(value.text)) {
    // What a command prints, and what a condition decides on, can be told by the variable that takes it.
    Unknown unknown = out_.unknowns.first_of(value.text);
    if (unknown.setting.empty() && unknown.kind != Unknown::Kind::unset) {
      unknown.setting = assignment.name;
      value.text = out_.unknowns.add(std::move(unknown));
    }
  }
  const Variable* known = known_to_copy(assignment.name, assignment.place);
  if (known != nullptr && known->is_array && !known->is_keyed) {
    Variable variable = *known;
    if (variable.items.empty()) variable.items.emplace_back();
    variable.items.front() = std::move(value);
    return variables().set(assignment.name, std::move(variable));
  }
  variables().set(assignment.name, {.items = {std::move(value)}});
}

Truth Interpreter::run_simple(const Command& command) {
  std::vector<Text> words = expand_words(command.words);
  if (words.empty()) {
    for (const Assignment& assignment : command.assignments) assign(assignment);
    return Truth::yes;
  }
  const std::string& name = words.front().text;
  const bool declares = name == "export" || name == "declare" || name == "local" || name == "readonly" || name == "typeset";
  if (declares || command.assignments.empty()) return run_words(std::move(words), command);
  // NAME=value before a command holds for it alone.
  return run_words(std::move(words), command);
}

Truth Interpreter::run_words(std::vector<Text> words, const Command& command) {
  if (const auto function = functions_.find(words.front().text); function != functions_.end()) {
    const std::shared_ptr<Command> body = function->second;
    return run_function(*body, {words.begin() + 1, words.end()}, command.place);
  }
  if (const std::optional<Truth> result = run_builtin(words, command)) return *result;
  run_inner_scripts(words, command);
  start(std::move(words), command.place);
  open_reason_.clear();
  return Truth::open;
}

Truth Interpreter::run_function(const Command& function, std::vector<Text> arguments, const Place& place) {
  if (++depth_ > deepest_call) throw InputError(place, "scripts, functions and eval call each other more than 40 deep");
  const bool knew = std::exchange(variables().knows_positional, true);
  std::vector<Text> outer = std::exchange(variables().positional, std::move(arguments));
  const Truth result = run(function);
  if (flow_ == Flow::left_function) flow_ = Flow::on;
  variables().positional = std::move(outer);
  variables().knows_positional = knew;
  --depth_;
  return result;
}

void Interpreter::start(std::vector<Text> words, const Place& place) {
  if (prints_) return;
  out_.started.push_back({.words = std::move(words), .place = place, .condition = open_condition_});
}

}  // namespace tandem::scenarios::shell
