// The view on a real pseudo-terminal, read by a small terminal of our own, and through pipes.
#include "view/terminal/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "view_input.h"

namespace phalanx::view {
namespace {

using std::chrono::milliseconds;
using wire::Stream;

// What a terminal of `columns` shows of the bytes: rows of text. Knows what the view may send, and counts anything else as bad.
class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}
  void feed(std::string_view bytes) {
    pending_ += bytes;
    size_t at = 0;
    while (at < pending_.size()) {
      std::string_view rest = std::string_view(pending_).substr(at);
      if (rest[0] == '\x1b') {
        size_t end = rest.find_first_of("ABCDEFGHJKfm", 2);
        if (end == std::string_view::npos) break;
        if (rest[end] == 'K') erase();
        else if (rest[end] != 'm') ++bad;
        else ++colours;
        at += end + 1;
        continue;
      }
      if (static_cast<unsigned char>(rest[0]) >= 0xc0 && rest.size() < 4 && !base::first_character(rest).valid) break;
      base::Character c = base::first_character(rest);
      put(rest.substr(0, c.length), base::display_width(c.code_point));
      at += c.length;
    }
    pending_.erase(0, at);
  }
  // Rows above the last one: what has scrolled by for good.
  const std::string& history() const { return history_; }
  const std::string& last_row() const { return row_; }
  int bad = 0, colours = 0, wrapped = 0;

 private:
  void erase() {
    if (column_ == 0) row_.clear();
  }
  void put(std::string_view character, size_t width) {
    if (character == "\n") {
      history_ += row_ + "\n";
      row_.clear();
      column_ = 0;
    } else if (character == "\r") {
      column_ = 0;
    } else if (static_cast<unsigned char>(character[0]) < 0x20) {
      ++bad;
    } else {
      if (column_ == 0) row_.clear();
      column_ += width;
      if (column_ > columns_) ++wrapped;
      row_ += character;
    }
  }
  size_t columns_, column_ = 0;
  std::string history_, row_, pending_;
};

class OnTerminal : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    loop_ = std::move(os::Loop::create()).value();
    winsize size{24, kColumns, 0, 0};
    int master = -1, slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_ = os::Fd(master);
    slave_ = os::Fd(slave);
    termios raw{};  // "\n" stays "\n"
    ASSERT_EQ(::tcgetattr(slave, &raw), 0);
    raw.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    ASSERT_EQ(::tcsetattr(slave, TCSANOW, &raw), 0);
    ASSERT_TRUE(os::set_nonblocking(master).ok());
  }
  std::unique_ptr<View> make(ViewOptions options = {}, const Environment& env = kUtf8, int ranks = 16) {
    TerminalCapabilities around = detect_terminal(slave_.get(), slave_.get(), env);
    EXPECT_TRUE(around.same);
    auto view = std::make_unique<View>(*loop_, around, Speech(choose_language(env)), options);
    std::vector<std::string> hosts;
    for (int i = 0; i < ranks; ++i) hosts.push_back(i < 8 ? "gpu01" : "gpu02");
    view->set_ranks(hosts);
    return view;
  }
  void read_all() {
    char buffer[65536];
    for (ssize_t n; (n = ::read(master_.get(), buffer, sizeof(buffer))) > 0;) {
      screen_.feed(std::string_view(buffer, static_cast<size_t>(n)));
      raw_ += std::string_view(buffer, static_cast<size_t>(n));
    }
  }
  void run_for(milliseconds time) {
    for (os::Mono end = os::mono_now() + time; os::mono_now() < end;) {
      loop_->poll(milliseconds(5));
      read_all();
    }
  }
  // Runs until `done`, at most 10 s.
  template <typename Done>
  bool run_until(Done done) {
    for (os::Mono end = os::mono_now() + std::chrono::seconds(10); os::mono_now() < end;) {
      if (done()) return true;
      loop_->poll(milliseconds(5));
      read_all();
    }
    return done();
  }
  static constexpr unsigned short kColumns = 80;
  std::unique_ptr<os::Loop> loop_;
  os::Fd master_, slave_;
  Screen screen_{kColumns};
  std::string raw_;
};

TEST_F(OnTerminal, LinesHaveHostAndRankAndStderrAMark) {
  auto view = make();
  view->line(8, Stream::kStdout, "hello\n");
  view->line(0, Stream::kStderr, "warning\n");
  EXPECT_TRUE(run_until([&] { return screen_.history() == "[gpu02:8] hello\n[gpu01:0!] warning\n"; })) << screen_.history();
  EXPECT_GT(screen_.colours, 0);
}

TEST_F(OnTerminal, TheBarStaysBelowTheLines) {
  auto view = make();
  view->progress(0, step(120));
  ASSERT_TRUE(run_until([&] { return screen_.last_row().starts_with("step 120/1000 ▕"); })) << screen_.last_row();
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    view->line(0, Stream::kStdout, "line " + std::to_string(i) + "\n");
    expected += "[gpu01:0] line " + std::to_string(i) + "\n";
    view->progress(0, step(120 + i));
    run_for(milliseconds(3));
  }
  ASSERT_TRUE(run_until([&] { return screen_.last_row().starts_with("step 169/1000 ▕"); })) << screen_.last_row();
  EXPECT_EQ(screen_.history(), expected) << "no bar is left among the lines, no line in the bar";
  view->finish(milliseconds(100));
  read_all();
  EXPECT_TRUE(screen_.history().starts_with(expected + "step 169/1000 ▕")) << "the last figures stay";
  EXPECT_EQ(screen_.last_row(), "");
  EXPECT_EQ(screen_.bad, 0);
  EXPECT_EQ(screen_.wrapped, 0);
}

TEST_F(OnTerminal, RedrawsAreFew) {
  auto view = make();
  auto begin = os::mono_now();
  for (int i = 0; i < 400; ++i) {
    view->progress(0, step(i));
    if (i % 3 == 0) view->line(0, Stream::kStdout, "x" + std::to_string(i) + "\n");
    run_for(milliseconds(1));
  }
  double seconds = std::chrono::duration<double>(os::mono_now() - begin).count();
  size_t draws = 0;
  for (size_t at = 0; (at = raw_.find("step ", at)) != std::string::npos; ++at) ++draws;
  EXPECT_LE(static_cast<double>(draws), 20 * seconds + 2);
  EXPECT_GE(draws, 3u);
}

TEST_F(OnTerminal, ATqdmOfEveryRankIsOneBarAndOneLastLine) {
  auto view = make({}, kUtf8, 4);
  for (int rank = 3; rank >= 0; --rank) view->bar(rank, "train:  45%|██| " + std::to_string(450 + rank) + "/1000 [00:12<00:15, 35.9it/s]");
  ASSERT_TRUE(run_until([&] { return screen_.last_row().find("ranks 450–453") != std::string::npos; })) << screen_.last_row();
  EXPECT_TRUE(screen_.last_row().starts_with("train 450/1000 ▕"));
  for (int rank : {1, 0, 2, 3})
    view->line(rank, Stream::kStderr,
               "train: 100%|██| 1000/1000 [00:28<00:00, 3" + std::to_string(rank) + "it/s]\nafter " + std::to_string(rank) + "\n");
  std::string expected =
      "[gpu01:1!] after 1\n[gpu01:0!] train: 100%|██| 1000/1000 [00:28<00:00, 30it/s]\n[gpu01:0!] after 0\n"
      "[gpu01:2!] after 2\n[gpu01:3!] after 3\n";
  EXPECT_TRUE(run_until([&] { return screen_.history() == expected && screen_.last_row().empty(); }))
      << screen_.history() << screen_.last_row();
}

TEST_F(OnTerminal, EqualLinesAreFolded) {
  auto view = make();
  for (int rank = 0; rank < 16; ++rank) view->line(rank, Stream::kStdout, "loading\n");
  EXPECT_TRUE(run_until([&] { return screen_.history() == "[gpu01:0] loading\n[×15 ranks 1–15] loading\n"; })) << screen_.history();
}

TEST_F(OnTerminal, WithoutUtf8AndInChinese) {
  auto ascii = make({}, environment({{"TERM", "xterm"}}));
  for (int rank = 0; rank < 16; ++rank) ascii->line(rank, Stream::kStdout, "loading\n");
  ascii->progress(0, step(500));
  EXPECT_TRUE(run_until([&] { return screen_.history() == "[gpu01:0] loading\n[x15 ranks 1-15] loading\n"; })) << screen_.history();
  EXPECT_TRUE(run_until([&] { return screen_.last_row().starts_with("step 500/1000 [####"); })) << screen_.last_row();
  ascii->finish(milliseconds(100));
  ascii.reset();
  auto chinese = make({}, environment({{"TERM", "xterm"}, {"LANG", "zh_CN.UTF-8"}}));
  chinese->progress(0, step(500));
  EXPECT_TRUE(run_until([&] { return screen_.last_row().starts_with("步 500/1000 ▕"); })) << screen_.last_row();
}

TEST_F(OnTerminal, RanksCannotMoveTheCursor) {
  auto view = make();
  view->progress(0, step(1));
  view->line(0, Stream::kStdout, "\x1b[2J\x1b[Hevil\x1b[5A\b\b\a\n\x1b[31mred\nplain\n");
  EXPECT_TRUE(run_until([&] { return screen_.history() == "[gpu01:0] evil\n[gpu01:0] red\n[gpu01:0] plain\n"; })) << screen_.history();
  EXPECT_EQ(screen_.bad, 0);
}

TEST_F(OnTerminal, NorCanWhatIsSaidOfThem) {
  auto view = make();
  view->say("phalanx: h1: \x1b]52;c;eA==\a\x1b[2J\r\nnext");
  view->say_error("error: \x1b]0;title\a\n");
  std::string shown = "phalanx: h1: \\x1b]52;c;eA==\\x07\\x1b[2J\nnext\nerror: \\x1b]0;title\\x07\n";
  EXPECT_TRUE(run_until([&] { return screen_.history() == shown; })) << screen_.history();
  EXPECT_EQ(screen_.bad, 0);
}

TEST_F(OnTerminal, TheBarFollowsTheWindow) {
  auto view = make();
  view->progress(0, step(120));
  ASSERT_TRUE(run_until([&] { return !screen_.last_row().empty(); }));
  winsize narrow{24, 20, 0, 0};
  ASSERT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &narrow), 0);
  EXPECT_TRUE(run_until([&] { return base::display_width(screen_.last_row()) < 20 && !screen_.last_row().empty(); })) << screen_.last_row();
}

TEST_F(OnTerminal, QuietHasNoBarAndNoTalk) {
  ViewOptions options;
  options.quiet = true;
  auto view = make(options);
  view->progress(0, step(120));
  view->say("talk");
  view->line(0, Stream::kStdout, "x\n");
  view->say_error("error: it broke\n");
  run_for(milliseconds(300));
  EXPECT_EQ(screen_.history(), "[gpu01:0] x\nerror: it broke\n");
  EXPECT_EQ(screen_.last_row(), "");
}

TEST_F(OnTerminal, ADumbTerminalHasNoBarAndNoColours) {
  auto view = make({}, environment({{"TERM", "dumb"}, {"LANG", "C.UTF-8"}}));
  view->progress(0, step(120));
  view->line(0, Stream::kStdout, "\x1b[31mx\x1b[0m\n");
  run_for(milliseconds(300));
  EXPECT_EQ(raw_, "[gpu01:0] x\n");
}

TEST_F(OnTerminal, SilenceIsBroken) {
  ViewOptions options;
  options.silence = milliseconds(300);
  auto view = make(options);
  EXPECT_TRUE(run_until([&] { return screen_.history().starts_with("phalanx: 16 ranks running, no output for 0:0"); }))
      << screen_.history();
}

TEST_F(OnTerminal, RanksThatPrintNothingAreSaidToRunOnce) {
  ViewOptions options;
  options.first_silence = milliseconds(100);
  auto view = make(options);
  EXPECT_TRUE(run_until([&] { return screen_.history() == "phalanx: 16 ranks running, no output yet\n"; })) << screen_.history();
  run_for(milliseconds(500));
  EXPECT_EQ(screen_.history(), "phalanx: 16 ranks running, no output yet\n");
}

TEST_F(OnTerminal, RanksThatPrintAreNotSaidToBeSilent) {
  ViewOptions options;
  options.first_silence = milliseconds(100);
  options.fold = Choice::kOff;
  auto view = make(options);
  view->line(0, Stream::kStdout, "x\n");
  run_for(milliseconds(500));
  EXPECT_EQ(screen_.history(), "[gpu01:0] x\n");
}

// Nobody reads the terminal (Ctrl-S): memory stays bounded because wants_more() says so, and nothing is lost afterwards.
TEST_F(OnTerminal, AStoppedTerminalStopsTheFlow) {
  ViewOptions options;
  options.fold = Choice::kOff;
  auto view = make(options);
  int rooms = 0;
  view->on_room([&] { ++rooms; });
  std::string expected;
  int lines = 0;
  for (; view->wants_more() && lines < 1000000; lines += 100) {
    std::string chunk;
    for (int i = 0; i < 100; ++i) chunk += "line " + std::to_string(lines + i) + " 0123456789\n";
    view->line(3, Stream::kStdout, chunk);
    loop_->poll(milliseconds(0));
  }
  EXPECT_LT(lines, 200000) << "about 2 MiB of text";
  EXPECT_EQ(rooms, 0);
  ASSERT_TRUE(run_until([&] { return rooms == 1; }));
  for (int i = 0; i < lines; ++i) expected += "[gpu01:3] line " + std::to_string(i) + " 0123456789\n";
  EXPECT_TRUE(run_until([&] { return screen_.history().size() == expected.size(); }));
  EXPECT_TRUE(screen_.history() == expected);
}

// The same for a run that goes on whether it is read or not: lines are dropped, and the reader is told how many when it reads again.
TEST_F(OnTerminal, AStoppedTerminalOfALiveRunMissesLines) {
  ViewOptions options;
  options.fold = Choice::kOff;
  options.live = true;
  auto view = make(options);
  constexpr size_t kLines = 200'000;
  for (size_t at = 0; at < kLines; at += 100) {
    std::string chunk;
    for (size_t i = 0; i < 100; ++i) chunk += "line " + std::to_string(at + i) + " 0123456789\n";
    view->line(3, Stream::kStdout, chunk);
    loop_->poll(milliseconds(0));
  }
  view->say_error("error: the verdict is shown all the same");
  const std::string told = "phalanx: lines missing here because they were not read in time: ";
  ASSERT_TRUE(run_until([&] { return screen_.history().find(told) != std::string::npos; }));
  ASSERT_TRUE(
      run_until([&] { return screen_.history().ends_with("\n") && screen_.history().find("shows all of them\n") != std::string::npos; }));
  const std::string shown = screen_.history();
  EXPECT_NE(shown.find("the verdict is shown all the same"), std::string::npos);
  const size_t missing = std::stoul(shown.substr(shown.find(told) + told.size()));
  const size_t lines = static_cast<size_t>(std::count(shown.begin(), shown.end(), '\n'));
  EXPECT_EQ(lines + missing, kLines + 2) << "every line is shown or counted";
  EXPECT_GT(missing, kLines / 2);
}

}  // namespace
}  // namespace phalanx::view
