#include "engine/finetune/generate_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "base/try.h"

namespace phalanx::engine::finetune {
namespace {

constexpr size_t kMaxLine = 16 << 20;

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

// Reading a line is not restarted after the signal, so that it can end the conversation too.
void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

// Nothing at the end of the input, or after an interrupt.
std::optional<std::string> read_line() {
  std::string out;
  for (int c = std::fgetc(stdin); c != EOF; c = std::fgetc(stdin)) {
    if (c == '\n') return out;
    if (out.size() < kMaxLine) out.push_back(static_cast<char>(c));
  }
  return out.empty() || interrupted ? std::nullopt : std::optional(out);
}

class Conversation {
 public:
  Conversation(Talker talker, const tuning::GenerateOptions& options, Bar& bar)
      : talker_(std::move(talker)), options_(options), bar_(bar), asks_(::isatty(STDIN_FILENO) == 1) {}

  base::Status run() {
    while (true) {
      if (asks_) std::fputs("> ", stderr);
      const std::optional<std::string> line = read_line();
      if (!line) break;
      const std::string_view text = base::trim(*line);
      if (text == "/exit" || text == "/quit") break;
      if (!text.empty()) TRY(text.front() == '/' ? command(text) : say(std::string(text)));
    }
    if (asks_) std::fputc('\n', stderr);
    return base::ok();
  }

 private:
  base::Status command(std::string_view text) {
    if (text == "/clear") {
      messages_.clear();
      bar_.note(words::tr("the conversation starts again"));
    } else if (text.starts_with("/system ")) {
      talker_.set_system(std::string(base::trim(text.substr(8))));
      bar_.note(words::tr("the system text is set"));
    } else {
      bar_.note(words::tr("/clear forgets the conversation, /system TEXT sets the system text, /exit or Ctrl-D ends"));
    }
    return base::ok();
  }

  // A message that cannot be answered is taken back; the conversation goes on.
  base::Status say(std::string message) {
    messages_.push_back(std::move(message));
    interrupted = 0;
    auto answer = talker_.answer(messages_, options_, [] { return interrupted == 0; });
    if (!answer.ok()) {
      messages_.pop_back();
      if (!asks_) return answer.error();
      bar_.note(answer.error().cause);
      return base::ok();
    }
    interrupted = 0;
    std::clearerr(stdin);
    messages_.push_back(std::move(*answer));
    ++options_.seed;  // the same message again is not drawn the same answer
    return base::ok();
  }

  Talker talker_;
  tuning::GenerateOptions options_;
  Bar& bar_;
  const bool asks_;
  std::vector<std::string> messages_;
};

}  // namespace

base::Status generate_text(const ModelRequest& request, const std::string& prompt, const tuning::GenerateOptions& options) {
  Bar bar(true, -1);
  TRY_ASSIGN(Talker talker, Talker::open(request, bar));
  TRY_ASSIGN([[maybe_unused]] const std::string answer, talker.answer({prompt}, options));
  bar.note(words::tr("template {}, {} tokens of prompt", talker.template_name(), talker.prompt_tokens()));
  return base::ok();
}

base::Status chat(const ModelRequest& request, const tuning::GenerateOptions& options) {
  Bar bar(true, -1);
  TRY_ASSIGN(Talker talker, Talker::open(request, bar));
  bar.note(words::tr("template {}; /clear forgets the conversation, /system TEXT sets the system text, /exit or Ctrl-D ends",
                     talker.template_name()));
  catch_interrupts();
  Conversation conversation(std::move(talker), options, bar);
  return conversation.run();
}

}  // namespace phalanx::engine::finetune
