#include "codes/catalogue.h"

#include <charconv>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {
namespace {

// As tools/compile_codes/catalogue.cc writes them: a role's digit and the code; "+" for the answer after the last new one, or a number.
void set_meaning(KnownMessage& message, std::string_view cell) {
  if (cell.empty()) return;
  message.role = static_cast<Role>(cell[0] - '0');
  message.code = cell.substr(1);
}

void set_answer(KnownMessage& message, std::string_view cell, size_t& answers) {
  if (cell.empty()) return;
  size_t number = answers;
  if (cell == "+") ++answers;
  else std::from_chars(cell.data(), cell.data() + cell.size(), number);
  message.answer = number;
}

}  // namespace

std::span<const KnownMessage> known_messages() {
  static const std::vector<KnownMessage> rows = [] {
    constexpr std::string_view KnownMessage::* kTexts[] = {&KnownMessage::source, &KnownMessage::file, &KnownMessage::severity,
                                                           &KnownMessage::words, &KnownMessage::then};
    constexpr size_t kColumns = std::size(kTexts) + 2;                                          // and the meaning, and the answer
    const std::vector<std::string_view> cells = base::split_lines(unpack(packed_catalogue()));  // column by column
    std::vector<KnownMessage> out(cells.size() / kColumns);
    size_t answers = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      auto cell = [&](size_t column) { return cells[column * out.size() + i]; };
      for (size_t column = 0; column < std::size(kTexts); ++column) out[i].*kTexts[column] = cell(column);
      set_meaning(out[i], cell(std::size(kTexts)));
      set_answer(out[i], cell(std::size(kTexts) + 1), answers);
    }
    return out;
  }();
  return rows;
}

std::optional<Answer> answer_of(const KnownMessage& message) {
  if (!message.answer) return std::nullopt;                                                        // before a megabyte is unpacked
  static const std::vector<std::string_view> texts = base::split_lines(unpack(packed_answers()));  // English, then Chinese
  return Answer{texts[*message.answer], texts[texts.size() / 2 + *message.answer]};
}

}  // namespace phalanx::codes
