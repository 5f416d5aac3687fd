#include "scenarios/interop/deepspeed/deepspeed_template.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"

namespace tandem::scenarios {
namespace {

class TemplateFiller {
 public:
  TemplateFiller(const std::string& text, const std::string& file, std::span<const std::string> environment)
      : text_(text), file_(file), environment_(environment) {}

  std::string all() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"')
        quoted();
      else if (c == '#' || text_.compare(at_, 2, "//") == 0)
        comment_to_end();
      else if (text_.compare(at_, 2, "/*") == 0)
        comment_between();
      else if (c == '$' || std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')
        word();
      else
        copy();
    }
    if (!missing_.empty())
      throw InputError(first_missing_, "is a template, whose placeholders have no values: " + joined(missing_) +
                                           "; expected --env NAME=VALUE for each, or the file that a script makes of it");
    return std::move(out_);
  }

 private:
  const std::string& text_;
  std::string file_;
  std::span<const std::string> environment_;
  std::string out_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::vector<std::string> missing_;
  Place first_missing_;

  void copy() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    out_ += text_[at_++];
  }
  void quoted() {
    copy();
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) copy();
      copy();
    }
    if (at_ < text_.size()) copy();
  }
  void comment_to_end() {
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) out_ += ' ';
  }
  void comment_between() {
    const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
    while (at_ < std::min(end + 2, text_.size())) {
      if (text_[at_] == '\n') {
        copy();
      } else {
        out_ += ' ';
        ++at_;
      }
    }
  }

  void word() {
    const Place place{.file = file_, .line = line_, .column = static_cast<int>(at_ - line_start_) + 1};
    const std::size_t begin = at_;
    if (text_[at_] == '$') ++at_;
    const bool braced = at_ < text_.size() && text_[at_] == '{' && at_ > begin;
    if (braced) ++at_;
    const std::size_t name_begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    const std::string name = text_.substr(name_begin, at_ - name_begin);
    if (braced && at_ < text_.size() && text_[at_] == '}') ++at_;
    for (const char* of_json : {"true", "false", "null", "NaN", "Infinity"})
      if (name == of_json) {
        out_ += name;
        return;
      }
    if (const auto value = value_of(name)) {
      out_ += *value;
      return;
    }
    const bool is_placeholder =
        text_[begin] == '$' || std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
    if (!is_placeholder) {  // wrong JSON, for whose parser it stays
      out_ += text_.substr(begin, at_ - begin);
      return;
    }
    if (missing_.empty()) first_missing_ = place;
    if (std::ranges::find(missing_, name) == missing_.end()) missing_.push_back(name);
    out_ += "null";
  }

  std::optional<std::string> value_of(const std::string& name) const {
    for (const std::string& entry : environment_)
      if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    return {};
  }
};

}  // namespace

std::string filled_in_template(const std::string& text, const std::string& file, std::span<const std::string> environment) {
  return TemplateFiller(text, file, environment).all();
}

}  // namespace tandem::scenarios
