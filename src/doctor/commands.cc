#include "doctor/commands.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/text.h"
#include "codes/slots.h"
#include "codes/values.h"

namespace phalanx::doctor {
namespace {

// A part of a line: its words without quotes, and what it does to the files its output goes to.
struct Part {
  std::vector<std::string> words;
  bool replaces_a_file = false, adds_to_a_file = false;
};

// Enough of the shell's grammar for the lines we print: quotes, "; && || |", and redirections.
class Reader {
 public:
  explicit Reader(std::string_view line) : line_(line) {}

  std::vector<Part> parts() {
    while (at_ < line_.size()) step();
    end_part();
    return std::move(parts_);
  }

 private:
  void step() {
    char c = line_[at_];
    if (quote_ != 0) {
      if (c == quote_) quote_ = 0;
      else word_ += c;
      ++at_;
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      ++at_;
    } else if (size_t end = c == '<' ? codes::slot_end(line_, at_) : 0; end != 0) {
      word_ += line_.substr(at_, end - at_);
      at_ = end;
    } else if (c == '>' || c == '<') {
      redirection(c);
    } else if (c == ';' || c == '|' || (c == '&' && line_.substr(at_, 2) == "&&")) {
      end_part();
      while (at_ < line_.size() && (line_[at_] == c || line_[at_] == '&')) ++at_;
    } else {
      if (c == ' ') end_word();
      else word_ += c;
      ++at_;
    }
  }
  void redirection(char direction) {
    word_.clear();  // the number of a descriptor, "2>"
    bool appends = line_.substr(at_, 2) == ">>";
    while (at_ < line_.size() && (line_[at_] == direction || line_[at_] == ' ')) ++at_;
    size_t end = line_.find_first_of(" ;|", at_);
    if (end == std::string_view::npos) end = line_.size();
    std::string_view file = line_.substr(at_, end - at_);
    if (direction == '>' && !appends && !file.starts_with("&") && file != "/dev/null") part_.replaces_a_file = true;
    if (appends) part_.adds_to_a_file = true;
    at_ = end;
  }
  void end_word() {
    if (!word_.empty()) part_.words.push_back(std::move(word_));
    word_.clear();
  }
  void end_part() {
    end_word();
    if (!part_.words.empty()) parts_.push_back(std::move(part_));
    part_ = {};
  }

  std::string_view line_;
  size_t at_ = 0;
  char quote_ = 0;
  std::string word_;
  Part part_;
  std::vector<Part> parts_;
};

// What runs another program stands before it: "sudo", "timeout 5", "A=1 B=2", "ssh gpu02".
void drop_prefixes(std::vector<std::string>& words) {
  auto is_assignment = [](const std::string& word) {
    size_t equals = word.find('=');
    return equals != std::string::npos && equals > 0 &&
           std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                       [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
  };
  while (!words.empty()) {
    size_t drop = 0;
    if (words[0] == "sudo" || words[0] == "time" || words[0] == "setsid" || is_assignment(words[0])) drop = 1;
    else if (words[0] == "timeout" || (words[0] == "ssh" && words.size() > 2 && !words[1].starts_with("-"))) drop = 2;
    if (drop == 0 || drop >= words.size()) return;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(drop));
  }
}

// "/opt/env/bin/python3.11" is python.
std::string program_name(std::string word) {
  word.erase(0, word.rfind('/') + 1);
  if (word.starts_with("python") && word.find_first_not_of("0123456789.", 6) == std::string::npos) return "python";
  return word;
}

struct KnownCommand {
  std::string_view words;  // the program, then arguments that tell it from its other uses
  CommandEffect effect;
};

std::span<const KnownCommand> known_commands() {
  static const std::vector<KnownCommand> all = [] {
    const codes::ValueTable& table = codes::values("commands");
    std::vector<KnownCommand> read;
    for (size_t i = 0; i < table.size(); ++i) {
      codes::ValueRow row = table.row(i);
      Effect effect = row[1] == "looks" ? Effect::kLooks : row[1] == "changes" ? Effect::kChanges : Effect::kDestroys;
      read.push_back({row[0], {effect, {row[2], row[3]}}});
    }
    return read;
  }();
  return all;
}

// The table's words are the program and arguments that must be among those given, in any order.
bool matches(const KnownCommand& known, const std::vector<std::string>& words) {
  std::vector<std::string_view> wanted = base::split(known.words, ' ');
  if (wanted[0] != program_name(words[0])) return false;
  return std::all_of(wanted.begin() + 1, wanted.end(), [&](std::string_view word) {
    return std::any_of(words.begin() + 1, words.end(), [&](const std::string& given) { return given == word; });
  });
}

constexpr words::Text kOverwrites{"overwrites the contents of the file"};

std::optional<CommandEffect> effect_of_part(Part part) {
  drop_prefixes(part.words);
  const KnownCommand* best = nullptr;
  for (const KnownCommand& known : known_commands())
    if (matches(known, part.words) && (best == nullptr || known.words.size() > best->words.size())) best = &known;
  if (best == nullptr) return std::nullopt;
  if (part.replaces_a_file && best->effect.effect != Effect::kDestroys)
    return CommandEffect{Effect::kDestroys, {kOverwrites.english, kOverwrites.in(base::Language::kChinese)}};
  return CommandEffect{part.adds_to_a_file ? std::max(best->effect.effect, Effect::kChanges) : best->effect.effect, best->effect.cost};
}

}  // namespace

std::optional<CommandEffect> effect_of(std::string_view line) {
  CommandEffect worst;
  for (Part& part : Reader(line).parts()) {
    std::optional<CommandEffect> effect = effect_of_part(std::move(part));
    if (!effect) return std::nullopt;
    if (effect->effect > worst.effect) worst = *effect;
  }
  return worst;
}

bool has_placeholder(std::string_view line) {
  if (line.find("…") != std::string_view::npos) return true;
  for (size_t at = line.find('<'); at != std::string_view::npos; at = line.find('<', at + 1))
    if (codes::slot_end(line, at) != 0) return true;
  return false;
}

std::string with_cost(std::string_view line, base::Language language) {
  std::optional<CommandEffect> effect = effect_of(line);
  std::string out(line);
  if (effect && !effect->cost.english.empty()) out += "   # " + std::string(effect->cost.in(language));
  return out;
}

std::string command_of(const Finding& finding, base::Language language) {
  if (!finding.fix.empty()) return finding.fix;
  for (std::string_view line : base::split_lines(finding.row->page().fix.in(language))) {
    if (!line.starts_with("$ ")) continue;
    line.remove_prefix(2);
    std::optional<CommandEffect> effect = effect_of(line);
    if (effect && effect->effect != Effect::kDestroys && !has_placeholder(line)) return std::string(line);
  }
  return "";
}

}  // namespace phalanx::doctor
