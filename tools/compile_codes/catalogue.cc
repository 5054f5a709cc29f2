#include "compile_codes/catalogue.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "compile_codes/packed.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestWords = 12;

constexpr size_t kColumns = 7;  // of the row as the launcher has it

// The answers, each once, in the order of the messages that have them first.
struct Answers {
  std::map<std::string, size_t> numbers;  // by both texts
  std::string english, chinese;           // a line each

  // How a message names its answer: "+" is the next one, else its number.
  std::string name_of(const Annotation& row) {
    const auto [known, is_new] = numbers.emplace(row.english + "\n" + row.chinese, numbers.size());
    if (!is_new) return std::to_string(known->second);
    english += row.english + "\n";
    chinese += row.chinese + "\n";
    return "+";
  }
};

// Without the function, the kinds of slots and the releases, which only people read.
base::Result<std::string> packed_message(const std::string& source, const std::vector<std::string>& cells, const Annotation* annotation,
                                         Answers& answers) {
  std::vector<std::string_view> words = base::split(cells[3], '|');
  if (words.size() > 2 || words[0].size() < kShortestWords)
    return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": one or two fragments, the first of 12 bytes or more", cells[3]));
  std::string then = words.size() > 1 ? std::string(words[1]) : "";
  if (cells[5].empty()) return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": the first release is missing", cells[3]));
  std::string meaning, answer;
  if (annotation && annotation->is_answer()) {
    if (!annotation->code.empty()) meaning = static_cast<char>('0' + static_cast<int>(annotation->role)) + annotation->code;
    answer = answers.name_of(*annotation);
  }
  return packed_row({source, cells[0], cells[2], std::string(words[0]), then, meaning, answer});
}

}  // namespace

base::Result<std::string> compile_catalogue(const fs::path& folder, const AnnotatedSources& annotations) {
  Answers answers;
  auto message = [&](const std::string& source, const std::vector<std::string>& cells) {
    const auto of_source = annotations.find(source);
    const bool annotated = of_source != annotations.end() && of_source->second.count(cells[3]) > 0;
    return packed_message(source, cells, annotated ? &of_source->second.at(cells[3]) : nullptr, answers);
  };
  TRY_ASSIGN(const std::string rows, packed_rows(folder, "file, function, severity, words, slots, first, last", message));
  TRY_ASSIGN(const std::string messages, packed_source("catalogue", by_columns(rows, kColumns)));
  TRY_ASSIGN(const std::string texts, packed_source("answers", answers.english + answers.chinese));
  return messages + texts;
}

}  // namespace phalanx::codes
