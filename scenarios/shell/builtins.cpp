#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {
namespace {

std::string joined_words(const std::vector<Text>& words, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (i == from ? "" : " ") + words[i].text;
  return text;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool is_shell(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name == "bash" || name == "sh" || name == "zsh";
}

}  // namespace

void Interpreter::end(const Place& place) {
  flow_ = Flow::ended;
  if (open_condition_.empty() && out_.ended.empty()) out_.ended = "the script ends in line " + std::to_string(place.line);
}

std::optional<Truth> Interpreter::run_builtin(std::vector<Text>& words, const Command& command) {
  const std::string name = words.front().text;
  const Place& place = command.place;
  if (name == "export" || name == "declare" || name == "local" || name == "readonly" || name == "typeset")
    return declare(words, command);
  if (name == ":" || name == "true") return Truth::yes;
  if (name == "false") return Truth::no;
  if (name == "exit") {
    end(place);
    return Truth::yes;
  }
  if (name == "return") {
    flow_ = Flow::left_function;
    return words.size() > 1 && words[1].text != "0" ? Truth::no : Truth::yes;
  }
  if (name == "break" || name == "continue") {
    flow_ = name == "break" ? Flow::left_loop : Flow::next_turn;
    return Truth::yes;
  }
  if (name == "[" || name == "test") {
    std::vector<Text> condition(words.begin() + 1, words.end());
    if (name == "[") {
      if (condition.empty() || condition.back().text != "]") throw InputError(place, "nothing closes [, expected ]");
      condition.pop_back();
    }
    return test_words(condition, place);
  }
  if (name == "echo" || name == "printf" || name == "pwd" || name == "dirname" || name == "basename" || name == "cd")
    return print(words);
  if (name == "source" || name == ".") return source(words, place);
  if (name == "eval") return evaluate_words(words, place);
  if (name == "let") {
    std::string unknown;
    std::int64_t last = 0;
    for (std::size_t i = 1; i < words.size(); ++i) last = arithmetic(words[i].text, place, unknown).value_or(0);
    return unknown.empty() ? truth(last != 0) : is_open(unknown);
  }
  if (name == "set") {
    const auto dashes = std::ranges::find(words, "--", &Text::text);
    if (dashes != words.end()) {
      variables().positional.assign(dashes + 1, words.end());
      variables().knows_positional = true;
    }
    return Truth::yes;
  }
  if (name == "shift") {
    std::size_t count = 1;
    if (words.size() > 1) std::from_chars(words[1].text.data(), words[1].text.data() + words[1].text.size(), count);
    std::vector<Text>& all = variables().positional;
    variables().knows_positional = variables().knows_positional || !all.empty();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())));
    return Truth::yes;
  }
  if (name == "unset") {
    for (std::size_t i = 1; i < words.size(); ++i)
      if (!words[i].text.starts_with('-')) variables().unset(words[i].text);
    return Truth::yes;
  }
  if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts") {
    for (std::size_t i = 1; i < words.size(); ++i)
      if (is_name(words[i].text))
        variables().set(words[i].text,
                        {.items = {{out_.unknowns.add({.kind = Unknown::Kind::output,
                                                       .what = "$" + words[i].text + ", which `" + name + "` takes",
                                                       .setting = words[i].text,
                                                       .place = place}),
                                    place}}});
    if (name == "getopts" && variables().positional.empty()) {
      if (variables().knows_positional) return Truth::no;
      open_reason_ = number_of_arguments(place);
    }
    return Truth::open;
  }
  if (name == "shopt" || name == "trap" || name == "wait" || name == "ulimit" || name == "umask" || name == "alias" ||
      name == "pushd" || name == "popd" || name == "sleep")
    return Truth::yes;
  return {};
}

Truth Interpreter::declare(std::vector<Text>& words, const Command& command) {
  bool keyed = false, array = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (word.starts_with('-')) {
      keyed = keyed || word.find('A') != std::string::npos;
      array = array || word.find('a') != std::string::npos;
    } else if (const std::size_t equals = word.find('='); equals != std::string::npos && is_name(word.substr(0, equals))) {
      variables().set(word.substr(0, equals), {.items = {{word.substr(equals + 1), words[i].place}}});
    } else if (is_name(word) && (keyed || array)) {
      variables().set(word, {.is_array = true, .is_keyed = keyed});
    }
  }
  for (const Assignment& assignment : command.assignments) {
    if (keyed) variables().set(assignment.name, {.is_array = true, .is_keyed = true});
    assign(assignment);
  }
  return Truth::yes;
}

/// Files beside the script alone: of a path whose folder is not known, what follows that.
Truth Interpreter::source(const std::vector<Text>& words, const Place& place) {
  if (words.size() < 2) return Truth::no;
  const std::string shown = out_.unknowns.readable(words[1].text);
  std::string path = words[1].text;
  if (const std::size_t mark = path.rfind(mark_end); mark != std::string::npos) path = path.substr(mark + 1);
  while (path.starts_with('/')) path.erase(0, 1);
  const std::filesystem::path folder = folder_of(file_);
  std::vector<std::filesystem::path> tries;
  if (words[1].text.starts_with(folder.string() + "/")) tries.emplace_back(words[1].text);
  for (std::filesystem::path rest = path; !rest.empty();) {
    tries.push_back(folder / rest);
    auto next = rest.begin();
    std::filesystem::path shorter;
    for (++next; next != rest.end(); ++next) shorter /= *next;
    rest = shorter;
  }
  for (const std::filesystem::path& file : tries) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    const std::string outer = std::exchange(file_, file.string());
    run_script(read_text_file(file_, "a shell script"), {.file = file_});
    file_ = outer;
    return Truth::yes;
  }
  out_.missing.push_back("line " + std::to_string(place.line) + " reads " + excerpt(shown) +
                         ", which is not beside this file, and what it sets is not known");
  return Truth::open;
}

Truth Interpreter::evaluate_words(const std::vector<Text>& words, const Place& place) {
  const std::string text = joined_words(words, 1);
  run_script(text, place);
  return Truth::open;
}

/// What printf makes of the words from `at` on, the first of which is the format; nothing where it has more than %s and %d.
std::optional<std::string> formatted(const std::vector<Text>& words, std::size_t at) {
  const std::string& format = words[at].text;
  std::string text;
  std::size_t next = at + 1;
  do {
    const std::size_t round = next;
    for (std::size_t i = 0; i < format.size(); ++i) {
      const char c = format[i], after = i + 1 < format.size() ? format[i + 1] : '\0';
      if (c == '\\' && (after == 'n' || after == 't' || after == '\\')) {
        text += after == 'n' ? '\n' : after == 't' ? '\t' : '\\';
      } else if (c == '%' && after == '%') {
        text += '%';
      } else if (c == '%' && (after == 's' || after == 'd')) {
        text += next < words.size() ? words[next++].text : after == 'd' ? "0" : "";
      } else if (c == '%' || c == '\\') {
        return std::nullopt;
      } else {
        text += c;
        continue;
      }
      ++i;
    }
    if (next == round) break;  // words that no directive takes are passed over
  } while (next < words.size());
  return text;
}

Truth Interpreter::print_formatted(const std::vector<Text>& words, std::size_t format) {
  const bool to_variable = words.size() >= 3 && words[1].text == "-v";
  if (!to_variable && !prints_) return Truth::yes;
  const std::size_t at = to_variable ? 3 : format;
  const std::optional<std::string> text = at < words.size() ? formatted(words, at) : std::nullopt;
  if (text) check_size(text->size() + printed_.size(), words[0].place);
  if (to_variable) {
    const auto written = [&] {
      return text ? *text
                  : out_.unknowns.add({.kind = Unknown::Kind::output,
                                       .what = "what `printf -v` writes",
                                       .setting = words[2].text,
                                       .place = words[0].place});
    };
    variables().set(words[2].text, {.items = {{written(), words[0].place}}});
  } else if (text) {
    printed_ += *text;
  } else {
    prints_ = false;  // not known
    printed_.clear();
  }
  return Truth::yes;
}

Truth Interpreter::print(const std::vector<Text>& words) {
  const std::string& name = words.front().text;
  std::size_t from = 1;
  while (from < words.size() && (words[from].text == "--" || (words[from].text.starts_with('-') && name != "printf"))) ++from;
  const std::string first = from < words.size() ? words[from].text : "";
  if (name == "cd") {
    last_folder_ = first;
    return Truth::yes;
  }
  if (name == "printf") return print_formatted(words, from);
  std::string text;
  if (name == "echo") {
    text = joined_words(words, from) + "\n";
  } else if (name == "pwd") {
    if (last_folder_.empty()) prints_ = false;
    text = last_folder_;
  } else if (Unknowns::has(first)) {
    text = first;
  } else {
    text = name == "dirname" ? folder_of(first) : std::filesystem::path(first).filename().string();
  }
  printed_ += text;
  if (prints_) check_size(printed_.size(), {.file = file_});
  if (!prints_) printed_.clear();
  return Truth::yes;
}

std::string Interpreter::output_of(const std::string& text, const Place& place) {
  constexpr std::size_t longest_shown = 60;
  const auto unknown = [&] {
    std::string shown = text.substr(0, longest_shown) + (text.size() > longest_shown ? ".." : "");
    std::ranges::replace(shown, '\n', ' ');
    return out_.unknowns.add(
        {.kind = Unknown::Kind::output, .what = "the output of `" + out_.unknowns.readable(shown) + "`", .place = place});
  };
  // Only what prints what is known is followed.
  constexpr std::string_view known[] = {"echo", "printf", "dirname", "basename", "cd", "pwd"};
  std::shared_ptr<Command> script;
  try {
    script = parse_script(text, place);
  } catch (const InputError&) {
    return unknown();
  }
  const auto prints_known = [&](const auto& self, const Command& command) -> bool {
    using enum Command::Kind;
    if (command.kind == sequence || command.kind == both)
      return std::ranges::all_of(command.children, [&](const auto& child) { return self(self, *child); });
    if (command.kind == simple && command.words.empty()) return true;  // assignments
    return command.kind == simple && std::ranges::find(known, command.words[0].plain()) != std::end(known);
  };
  if (script->children.empty() || !prints_known(prints_known, *script)) return unknown();
  if (++depth_ > deepest_call) throw InputError(place, "commands are nested more than 40 deep");
  const Variables before = variables();
  const std::string outer_printed = std::exchange(printed_, "");
  const std::string outer_folder = last_folder_;
  const bool outer_prints = std::exchange(prints_, true);
  run(*script);
  const std::string printed = std::exchange(printed_, outer_printed);
  const bool is_known = std::exchange(prints_, outer_prints);
  last_folder_ = outer_folder;
  variables() = before;
  flow_ = Flow::on;
  --depth_;
  return is_known ? printed : unknown();
}

/// bash -c 'script', and scripts that are handed on as here-documents.
void Interpreter::run_inner_scripts(const std::vector<Text>& words, const Command& command) {
  const auto follow = [&](const std::string& script, const Place& place) {
    const Variables before = variables();
    try {
      run_script(script, place);
    } catch (const InputError&) {
      if (!out_.started.empty()) return;  // it may be none; what it would start is not known
      throw;
    }
    variables() = before;
    flow_ = Flow::on;
  };
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (!is_shell(words[i].text)) continue;
    std::size_t option = i + 1;
    while (option < words.size() && words[option].text.starts_with('-') && !words[option].text.ends_with('c')) ++option;
    if (option + 1 < words.size() && words[option].text.starts_with('-')) return follow(words[option + 1].text, command.place);
  }
  const std::string name = std::filesystem::path(words.front().text).filename().string();
  if (name != "sbatch" && name != "ssh" && name != "srun" && !is_shell(name)) return;
  for (const auto& document : command.here_documents) {
    const Word text = parse_quoted(document->text, command.place);
    follow(document->expands ? expand_text(text) : document->text, command.place);
  }
}

}  // namespace tandem::scenarios::shell
