#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "scenarios/shell/arithmetic.h"
#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"
#include "scenarios/shell/patterns.h"

namespace tandem::scenarios::shell {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string joined_items(const std::vector<Text>& items, const std::string& separator = " ") {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : separator) + items[i].text;
  return text;
}

/// What stands between the items of "${list[*]}": the first character of IFS.
std::string separator_of(const Variables& variables) {
  const Variable* ifs = variables.find("IFS");
  if (ifs == nullptr || ifs->items.empty()) return " ";
  return ifs->items.front().text.substr(0, 1);
}

}  // namespace

void Interpreter::check_size(std::size_t size, const Place& place) {
  constexpr std::size_t of_a_step = 10'000;
  count(place, static_cast<std::int64_t>(size / of_a_step));
  if (size > longest_text) throw InputError(place, "a text grows beyond 1 MiB, expected a script that starts training");
}

std::vector<Interpreter::Piece> Interpreter::pieces_of(const Word& word, bool splits) {
  std::vector<Piece> pieces;
  for (const WordPart& part : word.parts) add_part(part, splits, pieces);
  return pieces;
}

void Interpreter::add_part(const WordPart& part, bool splits, std::vector<Piece>& pieces) {
  const bool split = splits && !part.quoted;
  switch (part.kind) {
    case WordPart::Kind::literal:
      return pieces.push_back({.text = part.text, .place = part.place, .splits = false, .quoted = part.quoted});
    case WordPart::Kind::arithmetic:
      return pieces.push_back({.text = arithmetic_text(part), .place = part.place, .splits = split, .quoted = part.quoted});
    case WordPart::Kind::substitution:
      return pieces.push_back({.text = substitute(part), .place = part.place, .splits = split, .quoted = part.quoted});
    case WordPart::Kind::parameter:
      return add_parameter(part, splits, pieces);
  }
}

std::optional<std::int64_t> Interpreter::arithmetic(const std::string& text, const Place& place, std::string& unknown) {
  const ArithmeticScope scope{.read =
                                  [&](const std::string& name, const std::string& key) {
                                    const Variable* variable = variables().find(name);
                                    if (!key.empty()) return element(name, key, place).text;
                                    if (variable == nullptr) return unset_text(name, place).text;
                                    return variable->items.empty() ? std::string() : variable->items.front().text;
                                  },
                              .write = [&](const std::string& name, const std::string& key,
                                           std::int64_t value) { write_element(name, key, value, place); }};
  return evaluate_arithmetic(text, place, scope, unknown);
}

std::string Interpreter::arithmetic_text(const WordPart& part) {
  std::string unknown;
  std::string text = expand_text(parse_quoted(part.text, part.place));
  std::erase(text, '"');
  const std::optional<std::int64_t> value = arithmetic(text, part.place, unknown);
  return value ? std::to_string(*value) : unknown;
}

void Interpreter::add_items(const WordPart& part, std::vector<Text> items, bool splits, std::vector<Piece>& pieces) {
  if (part.quoted && (part.text == "*" || part.subscript == "*")) {
    pieces.push_back(
        {.text = joined_items(items, separator_of(variables())), .place = part.place, .splits = false, .quoted = true});
    return;
  }
  bool first = true;
  for (Text& item : items) {
    if (!splits && !first) pieces.back().text += " ";  // of an assignment
    pieces.push_back({.text = std::move(item.text),
                      .place = item.place,
                      .splits = splits && !part.quoted,
                      .quoted = part.quoted,
                      .begins_field = splits && !first});
    first = false;
  }
}

void Interpreter::add_parameter(const WordPart& part, bool splits, std::vector<Piece>& pieces) {
  if (part.indirect) {
    WordPart direct = part;
    direct.indirect = false;
    if (is_list_subscript(part.subscript)) {  // ${!A[@]}: the keys
      std::vector<Text> keys;
      if (const Variable* variable = variables().find(part.text)) {
        for (const auto& [key, item] : variable->keyed) keys.push_back({key, part.place});
        for (std::size_t i = 0; i < variable->items.size(); ++i)
          if (!variable->items[i].is_gap) keys.push_back({std::to_string(i), part.place});
      }
      return add_items(part, std::move(keys), splits, pieces);
    }
    const Variable* variable = variables().find(part.text);
    if (variable != nullptr && !variable->items.empty() && is_name(variable->items[0].text))
      direct.text = variable->items[0].text;
    return add_parameter(direct, splits, pieces);
  }
  const std::string& operation = part.operation;
  Parameter value = parameter(part);
  if (part.length) {
    std::string text = value.items.empty() ? "" : value.items.front().text;
    if (value.is_list) {
      text = std::to_string(value.items.size());
    } else if (!Unknowns::has(text)) {
      text = std::to_string(text.size());
    }
    return pieces.push_back({.text = text, .place = part.place, .splits = false, .quoted = part.quoted});
  }
  const bool by_emptiness = operation.size() == 2 && operation[0] == ':';
  const char kind = operation.empty() ? '\0' : operation.back();
  if (by_emptiness || operation == "-" || operation == "=" || operation == "+" || operation == "?") {
    const std::string whole = joined_items(value.items);
    const bool is_missing = !value.is_set || (by_emptiness && whole.empty());
    if (kind == '+') {
      if (is_missing) return;
    } else if (!is_missing || kind == '?') {
      return value.is_list ? add_items(part, std::move(value.items), splits, pieces)
                           : pieces.push_back({.text = whole,
                                               .place = value.items.front().place,
                                               .splits = splits && !part.quoted,
                                               .quoted = part.quoted});
    }
    std::vector<Piece> inside = pieces_of(*part.operand, splits && !part.quoted);
    for (Piece& piece : inside)
      if (!piece.quoted && splits && !part.quoted) piece.splits = true;
    if (kind == '=') {
      const std::string text = expand_text(*part.operand);
      variables().set(part.text, {.items = {{text, part.place}}});
    }
    if (part.quoted)
      for (Piece& piece : inside) piece.quoted = true;
    if (inside.empty() && part.quoted) inside.push_back({.text = "", .place = part.place, .quoted = true});
    pieces.insert(pieces.end(), inside.begin(), inside.end());
    return;
  }
  if (value.is_list) {
    if (operation == ":") return add_items(part, slice(part, value.items), splits, pieces);
    for (Text& item : value.items) item.text = with_operation(part, item.text);
    return add_items(part, std::move(value.items), splits, pieces);
  }
  const Text& item = value.items.front();
  pieces.push_back(
      {.text = with_operation(part, item.text), .place = item.place, .splits = splits && !part.quoted, .quoted = part.quoted});
}

std::string Interpreter::with_operation(const WordPart& part, const std::string& text) {
  const std::string& operation = part.operation;
  if (operation.empty() || Unknowns::has(text)) return text;
  if (operation == ":") return substring(part, text);
  if (operation == "^" || operation == "^^" || operation == "," || operation == ",,") {
    std::string changed = text;
    const std::size_t end = operation.size() == 1 ? std::min<std::size_t>(1, text.size()) : text.size();
    for (std::size_t i = 0; i < end; ++i)
      changed[i] = static_cast<char>(operation[0] == '^' ? std::toupper(static_cast<unsigned char>(text[i]))
                                                         : std::tolower(static_cast<unsigned char>(text[i])));
    return changed;
  }
  if (operation == "@") return text;
  if (text.size() > 4096) throw InputError(part.place, "a text of more than 4,096 characters is not matched with patterns");
  if (operation[0] == '/') {
    // The first slash that is not quoted parts pattern and replacement.
    Word pattern{.parts = {}, .place = part.place}, replacement{.parts = {}, .place = part.place};
    Word* into = &pattern;
    for (const WordPart& one : part.operand->parts) {
      const std::size_t slash = one.text.find('/');
      if (into == &pattern && one.kind == WordPart::Kind::literal && slash != std::string::npos) {
        WordPart before = one, after = one;
        before.text = one.text.substr(0, slash);
        after.text = one.text.substr(slash + 1);
        pattern.parts.push_back(before);
        into = &replacement;
        replacement.parts.push_back(after);
      } else {
        into->parts.push_back(one);
      }
    }
    const std::string what = expand_pattern(pattern), by = expand_text(replacement);
    if (Unknowns::has(what) || Unknowns::has(by)) return Unknowns::has(what) ? what : by;
    if (operation == "/#" || operation == "/%") {
      const std::string rest = operation == "/#" ? without_prefix(text, what, true) : without_suffix(text, what, true);
      if (rest.size() == text.size()) return text;
      return operation == "/#" ? by + rest : rest + by;
    }
    return with_replaced(text, what, by, operation == "//");
  }
  std::string pattern = expand_pattern(*part.operand);
  if (Unknowns::has(pattern)) return pattern;
  return operation[0] == '#' ? without_prefix(text, pattern, operation.size() == 2)
                             : without_suffix(text, pattern, operation.size() == 2);
}

namespace {

/// offset and, behind a colon, length.
std::pair<std::string, std::optional<std::string>> range_of(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ':' && depth == 0) return {text.substr(0, i), text.substr(i + 1)};
  }
  return {text, {}};
}

}  // namespace

std::string Interpreter::substring(const WordPart& part, const std::string& text) {
  const auto [from, length] = range_of(expand_text(*part.operand));
  std::string unknown;
  const auto size = static_cast<std::int64_t>(text.size());
  std::int64_t begin = arithmetic(from, part.place, unknown).value_or(0);
  std::int64_t count = length ? arithmetic(*length, part.place, unknown).value_or(0) : size;
  if (!unknown.empty()) return unknown;
  if (begin < 0) begin += size;
  if (begin < 0 || begin > size) return "";
  if (count < 0) count = std::max<std::int64_t>(0, size + count - begin);
  return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(count, size - begin)));
}

std::vector<Text> Interpreter::slice(const WordPart& part, const std::vector<Text>& items) {
  const auto [from, length] = range_of(expand_text(*part.operand));
  std::string unknown;
  std::int64_t begin = arithmetic(from, part.place, unknown).value_or(0);
  const auto size = static_cast<std::int64_t>(items.size());
  std::int64_t count = length ? arithmetic(*length, part.place, unknown).value_or(0) : size;
  if (!unknown.empty()) return {{unknown, part.place}};
  if (!begins_name(part.text[0])) begin -= begin > 0 ? 1 : 0;  // ${@:2} counts from $1
  if (begin < 0) begin += size;
  begin = std::clamp<std::int64_t>(begin, 0, size);
  count = std::clamp<std::int64_t>(count, 0, size - begin);
  return {items.begin() + begin, items.begin() + begin + count};
}

std::vector<Text> Interpreter::fields_of(const std::vector<Piece>& pieces, const Place& place) {
  std::vector<Text> fields;
  Text current{"", place};
  bool is_begun = false;
  const auto close = [&] {
    if (is_begun) fields.push_back(current);
    current = {"", place};
    is_begun = false;
  };
  for (const Piece& piece : pieces) {
    if (piece.begins_field) close();
    if (!is_begun && (piece.splits || pieces.size() == 1 || piece.begins_field) && piece.place.line > 0)
      current.place = piece.place;
    if (!piece.splits) {
      current.text += piece.text;
      is_begun = is_begun || piece.quoted || !piece.text.empty();
      continue;
    }
    for (const char c : piece.text) {
      if (is_blank(c)) {
        close();
        if (piece.place.line > 0) current.place = piece.place;
      } else {
        current.text += c;
        is_begun = true;
      }
    }
  }
  close();
  return fields;
}

std::vector<Text> Interpreter::expand_fields(const Word& word) { return fields_of(pieces_of(word, true), word.place); }

std::vector<Text> Interpreter::expand_words(const std::vector<Word>& words) {
  std::vector<Text> all;
  for (const Word& word : words) {
    std::vector<Text> fields = expand_fields(word);
    std::size_t size = 0;
    for (const Text& field : fields) size += field.text.size();
    check_size(size, word.place);
    count_values(word.place, fields.size());
    if (all.size() + fields.size() > most_items) throw InputError(word.place, "a command has more than 100,000 words");
    std::ranges::move(fields, std::back_inserter(all));
  }
  return all;
}

std::string Interpreter::expand_text(const Word& word) {
  std::string text;
  for (const Piece& piece : pieces_of(word, false)) text += piece.text;
  check_size(text.size(), word.place);
  return text;
}

std::string Interpreter::expand_pattern(const Word& word) {
  std::string pattern;
  for (const Piece& piece : pieces_of(word, false)) {
    for (const char c : piece.text) {
      if (piece.quoted && std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

std::string Interpreter::substitute(const WordPart& part) {
  std::string printed = output_of(part.text, part.place);
  while (printed.ends_with('\n')) printed.pop_back();
  return printed;
}

}  // namespace tandem::scenarios::shell
