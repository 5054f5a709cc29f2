#include "logs/step_line.h"

#include <cmath>
#include <string>

#include "base/text.h"
#include "logs/escape.h"
#include "logs/progress_bar.h"

namespace phalanx::logs {
namespace {

constexpr size_t kMostBytes = 1024;
constexpr double kEpochUnits = 1e6;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
using base::is_digit;

std::optional<double> number_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && end - at < 18 && (is_digit(text[end]) || text[end] == '.')) ++end;
  if (end == at || !is_digit(text[at])) return std::nullopt;
  return std::strtod(std::string(text.substr(at, end - at)).c_str(), nullptr);
}

// The number behind a word, with nothing but ":", "=", quotes, brackets and blanks between them.
std::optional<double> behind(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    size_t i = at + word.size();
    while (i < text.size() && i < at + word.size() + 6 && std::string_view(" :=#'\"[(").find(text[i]) != std::string_view::npos) ++i;
    if (i == at + word.size()) continue;  // "steps", "step3"
    if (std::optional<double> number = number_at(text, i)) return number;
  }
  return std::nullopt;
}

// Where the digits at `at` end.
size_t number_end(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// "/300" or " of 300" behind the number that begins at `at`.
std::optional<int64_t> total_behind(std::string_view text, size_t at) {
  at = number_end(text, at);
  while (at < text.size() && text[at] == ' ') ++at;
  if (at < text.size() && text[at] == '/') ++at;
  else if (text.substr(at).starts_with("of ")) at += 3;
  else return std::nullopt;
  while (at < text.size() && text[at] == ' ') ++at;
  std::optional<double> total = number_at(text, at);
  return total && *total >= 1 ? std::optional<int64_t>(static_cast<int64_t>(*total)) : std::nullopt;
}

constexpr size_t kMostBetween = 14;  // blanks and marks between a word and its number; Megatron pads to a width

// The number of a step as `behind` finds it, and what stands behind that. Only whole numbers: "step 0.5s" is a time.
bool take_step(std::string_view text, std::string_view word, StepFigures& figures) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    size_t i = at + word.size();
    while (i < text.size() && i < at + word.size() + kMostBetween && std::string_view(" :=#'\"[(").find(text[i]) != std::string_view::npos)
      ++i;
    const size_t end = number_end(text, i);
    if (i == at + word.size() || end == i || end - i > 15) continue;
    if (end < text.size() && (text[end] == '.' || is_letter(text[end])) && end + 1 < text.size() && text[end + 1] != ' ') continue;
    figures.step = static_cast<int64_t>(*number_at(text.substr(0, end), i));
    figures.total = total_behind(text, i);
    return true;
  }
  return false;
}

// A number, with sign and exponent, behind a word that ends in "loss", with nothing but ":", "=", "is", quotes and blanks between them.
std::optional<double> loss_behind(std::string_view text) {
  for (size_t at = text.find("loss"); at != std::string_view::npos; at = text.find("loss", at + 4)) {
    size_t i = at + 4;
    while (i < text.size() && i < at + 10 && std::string_view(" :='\"(").find(text[i]) != std::string_view::npos) ++i;
    if (i == at + 4 || i == text.size() || (!is_digit(text[i]) && text[i] != '-')) continue;
    const std::string number(text.substr(i, 32));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end != number.c_str() && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

// "4,123.5" behind the last of the words that `text` has, with nothing but ":", "=", quotes and blanks between them.
std::optional<double> rate_behind(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words)
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      size_t i = at + word.size();
      if (at > 0 && is_letter(text[at - 1])) continue;
      while (i < text.size() && i < at + word.size() + 6 && std::string_view(" :='\")").find(text[i]) != std::string_view::npos) ++i;
      if (i == at + word.size() || i == text.size() || !is_digit(text[i])) continue;
      std::string number;
      for (; i < text.size() && number.size() < 32; ++i)
        if (is_digit(text[i]) || text[i] == '.' || (text[i] == 'e' && i + 1 < text.size() && text[i + 1] == '+')) number += text[i];
        else if (text[i] == '+' && number.ends_with("e")) number += '+';
        else if (text[i] != ',' || i + 3 >= text.size() || !is_digit(text[i + 1]) || !is_digit(text[i + 2]) || !is_digit(text[i + 3]))
          break;
      const double value = std::strtod(number.c_str(), nullptr);
      if (std::isfinite(value) && value > 0) return value;
    }
  return std::nullopt;
}

void take_rates(std::string_view text, StepFigures& figures) {
  figures.tokens_per_s = rate_behind(text, {"tokens_per_second", "tokens_per_sec", "tokens/sec", "tokens/s", "tok/s", "toks/s",
                                            "tokens per second", "throughput (tokens/s", "throughput (tok/s"});
  if (!figures.tokens_per_s) {
    figures.tokens_per_s = rate_behind(text, {"tps", "tokens/s/gpu", "tokens_per_second_per_gpu", "tgs"});
    figures.per_rank = figures.tokens_per_s.has_value();
  }
  // Of LLaMA-Factory: all tokens so far, divided by the time.
  if (!figures.tokens_per_s && text.starts_with("{\"current_steps\"")) figures.tokens_per_s = rate_behind(text, {"throughput"});
  figures.samples_per_s = rate_behind(text, {"currsamplespersec", "runningavgsamplespersec", "samplespersec", "samples_per_second",
                                             "samples_per_sec", "samples per second", "samples/sec", "samples/s", "imgs/s", "img/s"});
}

// A dictionary of transformers' Trainer about something else than a step: {'eval_loss': …}, {'train_runtime': …}.
bool is_evaluation(std::string_view text) {
  if (!text.starts_with('{')) return false;
  return text.find("eval_") != std::string_view::npos || text.find("train_runtime") != std::string_view::npos;
}

}  // namespace

std::optional<StepFigures> step_figures(std::string_view line) {
  const std::string plain = base::to_lower(strip_escapes(line.substr(0, kMostBytes)));
  const std::string_view text = base::trim(plain);
  StepFigures figures;
  if (is_evaluation(text)) return std::nullopt;
  figures.loss = loss_behind(text);
  take_rates(text, figures);
  for (std::string_view word : {"global_step", "current_steps", "step", "iteration", "iter", "batch"})
    if (take_step(text, word, figures)) break;
  if (figures.step && !figures.total && text.starts_with('{'))
    if (std::optional<double> total = behind(text, "total_steps"); total && *total >= 1) figures.total = static_cast<int64_t>(*total);
  if (!figures.step && figures.loss)
    if (size_t open = text.find('['); open != std::string_view::npos) {
      size_t i = open + 1;
      while (i < text.size() && text[i] == ' ') ++i;
      if (std::optional<int64_t> total = i < text.size() && is_digit(text[i]) ? total_behind(text, i) : std::nullopt; total) {
        figures.step = static_cast<int64_t>(*number_at(text.substr(0, number_end(text, i)), i));
        figures.total = total;
      }
    }
  if (figures.total && figures.step && *figures.step > *figures.total) figures.total.reset();
  const bool trainer = figures.loss && text.starts_with('{') && text.find("epoch") != std::string_view::npos;
  const bool deepspeed = text.find("skipped=") != std::string_view::npos;
  if (figures.step ? figures.total || figures.loss || figures.tokens_per_s || figures.samples_per_s || deepspeed : trainer) return figures;
  return std::nullopt;
}

std::optional<int64_t> step_in(std::string_view line) {
  std::string text = base::to_lower(line.substr(0, kMostBytes));
  for (std::string_view word : {"step", "steps", "iteration", "iter", "iters", "it", "batch"})
    if (std::optional<double> number = behind(text, word)) return static_cast<int64_t>(*number);
  bool loss = text.find("loss") != std::string::npos;
  if (loss)
    if (std::optional<double> epoch = behind(text, "epoch")) return std::llround(*epoch * kEpochUnits);
  if (std::optional<Bar> bar = parse_bar(line.substr(0, kMostBytes)); bar && bar->done && bar->total) return std::llround(*bar->done);
  // "[  12/1000]"
  size_t open = text.find('[');
  if (open == std::string::npos) return std::nullopt;
  size_t i = open + 1;
  while (i < text.size() && text[i] == ' ') ++i;
  std::optional<double> number = number_at(text, i);
  size_t slash = text.find('/', i), close = text.find(']', i);
  if (!number || slash == std::string::npos || close == std::string::npos || slash > close || slash - i > 12) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace phalanx::logs
