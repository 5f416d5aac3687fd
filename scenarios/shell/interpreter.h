#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/shell/evaluate.h"
#include "scenarios/shell/syntax.h"

namespace tandem::scenarios::shell {

/// What a command says to a condition.
enum class Truth : std::uint8_t {
  no,
  yes,
  open
};
constexpr Truth truth(bool value) { return value ? Truth::yes : Truth::no; }
constexpr Truth opposite(Truth of) { return of == Truth::open ? of : truth(of == Truth::no); }

/// Where the next command is.
enum class Flow : std::uint8_t {
  on,
  left_loop,      ///< break
  next_turn,      ///< continue
  left_function,  ///< return
  ended           ///< exit
};

/// Follows the commands of a script. Parts by file: commands, built-in commands, expansions, parameters, conditions.
class Interpreter {
 public:
  Interpreter(std::string file, Evaluated& into) : file_(std::move(file)), out_(into) {}

  void run_script(std::string_view text, const Place& from);
  std::string expand_text(const Word& word);  ///< unsplit, as in an assignment
  std::vector<Text> expand_words(const std::vector<Word>& words);

 private:
  friend class TestReader;
  std::string file_;
  Evaluated& out_;
  std::map<std::string, std::shared_ptr<Command>> functions_;
  Flow flow_ = Flow::on;
  std::string open_condition_;  ///< the one whose way is followed
  std::string open_reason_;     ///< why the last command's truth is open, as marks
  std::int64_t steps_ = 0;
  int depth_ = 0;
  std::string printed_;      ///< what echo and its like print, where it is wanted
  bool prints_ = false;      ///< and is known
  std::string last_folder_;  ///< of the last cd

  Variables& variables() { return out_.variables; }
  void count(const Place& place, std::int64_t steps = 1);
  /// Counts what copying so many values takes: a step for a hundred.
  void count_values(const Place& place, std::size_t values) { count(place, static_cast<std::int64_t>(values / 100)); }
  void assume(const std::string& sentence);

  // commands.cpp
  Truth run(const Command& command);
  Truth run_sequence(const Command& command);
  Truth run_conditional(const Command& command);
  Truth run_choice(const Command& command);
  Truth run_iteration(const Command& command);
  Truth run_loop(const Command& command);
  Truth run_pipeline(const Command& command);
  Truth run_copy(const Command& command);
  Truth run_simple(const Command& command);
  Truth run_function(const Command& function, std::vector<Text> arguments, const Place& place);
  Truth run_words(std::vector<Text> words, const Command& command);
  bool turn_is_over();
  /// Follows each of the ways on by itself, and joins them. None in a way: it does nothing.
  Truth run_ways(const std::vector<const Command*>& ways, const std::string& described, const Place& place);
  const Variable* known_to_copy(const std::string& name, const Place& place);  ///< none: it is not known
  void assign(const Assignment& assignment);
  void assign_array(const Assignment& assignment);
  void assign_element(const Assignment& assignment);
  void append(const Assignment& assignment);
  void start(std::vector<Text> words, const Place& place);

  // builtins.cpp
  std::optional<Truth> run_builtin(std::vector<Text>& words, const Command& command);
  Truth declare(std::vector<Text>& words, const Command& command);
  Truth source(const std::vector<Text>& words, const Place& place);
  Truth evaluate_words(const std::vector<Text>& words, const Place& place);
  Truth print(const std::vector<Text>& words);
  Truth print_formatted(const std::vector<Text>& words, std::size_t format);
  void end(const Place& place);
  void run_inner_scripts(const std::vector<Text>& words, const Command& command);

  // expansion.cpp
  struct Piece {
    std::string text;
    Place place;
    bool splits = false;
    bool quoted = false;
    bool begins_field = false;  ///< of "${A[@]}", from its second item on
  };
  std::vector<Piece> pieces_of(const Word& word, bool splits);
  void add_part(const WordPart& part, bool splits, std::vector<Piece>& pieces);
  void add_parameter(const WordPart& part, bool splits, std::vector<Piece>& pieces);
  void add_items(const WordPart& part, std::vector<Text> items, bool splits, std::vector<Piece>& pieces);
  std::vector<Text> fields_of(const std::vector<Piece>& pieces, const Place& place);
  std::vector<Text> expand_fields(const Word& word);
  /// With a backslash before what was quoted.
  std::string expand_pattern(const Word& word);
  std::string with_operation(const WordPart& part, const std::string& text);
  std::string substring(const WordPart& part, const std::string& text);
  std::vector<Text> slice(const WordPart& part, const std::vector<Text>& items);
  std::string substitute(const WordPart& part);
  std::string output_of(const std::string& text, const Place& place);
  std::optional<std::int64_t> arithmetic(const std::string& text, const Place& place, std::string& unknown);
  std::string arithmetic_text(const WordPart& part);
  /// Throws where a text is too long, and counts what copying it takes.
  void check_size(std::size_t size, const Place& place);

  // parameters.cpp
  struct Parameter {
    std::vector<Text> items = {};
    bool is_set = false;
    bool is_list = false;  ///< $@, ${A[@]}
  };
  Parameter parameter(const WordPart& part);
  std::string number_of_arguments(const Place& place);
  Parameter positional_parameter(const WordPart& part);
  Text unset_text(const std::string& name, const Place& place);
  Text element(const std::string& name, const std::string& key, const Place& place);
  void write_element(const std::string& name, const std::string& key, std::int64_t value, const Place& place);
  std::size_t index_of(const std::string& key, const Place& place, std::string& unknown);
  std::string expand_key(const std::string& text, const Place& place);

  // conditions.cpp
  Truth test(const std::vector<Word>& words, const Place& place);        // [[ ]]
  Truth test_words(const std::vector<Text>& words, const Place& place);  // [ ]
  Truth unary_test(const std::string& sign, const std::string& text);
  Truth binary_test(const std::string& left, const std::string& sign, const std::string& right, bool patterns,
                    const Place& place);
  Truth is_open(const std::string& text);
  Truth is_empty(const std::string& text);
};

inline bool is_list_subscript(std::string_view subscript) { return subscript == "@" || subscript == "*"; }

/// What a condition needs to be told by, from what is unknown in it.
Unknown condition_unknown(const std::string& described, const std::string& reason, const Place& place, const Unknowns& unknowns);

inline constexpr const char* arguments_in_number = "the number of the script's arguments";
inline constexpr std::int64_t most_steps = 200'000;
inline constexpr int deepest_call = 40;
inline constexpr std::size_t longest_text = std::size_t{1} << 20;
inline constexpr std::size_t most_items = 100'000;

}  // namespace tandem::scenarios::shell
