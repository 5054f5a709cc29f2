#include "logs/line_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace phalanx::logs {
namespace {

struct Given {
  std::string lines;                // every line, in order
  std::vector<std::string> states;  // every bar state
  int cuts = 0;
  std::vector<std::string> chunks;  // "L:…" and "P:…"
};

class Harness {
 public:
  Harness() {
    sink_ = [this](const Chunk& chunk) {
      ASSERT_FALSE(chunk.bytes.empty());
      bool lines = chunk.kind == wire::OutputKind::kLines;
      ASSERT_LE(chunk.bytes.size(), 2 * kMaxLineBytes);
      if (lines) {
        ASSERT_EQ(chunk.bytes.back(), '\n');
        given.lines += chunk.bytes;
        given.cuts += chunk.cut;
      } else {
        ASSERT_EQ(chunk.bytes.find_first_of("\r\n"), std::string_view::npos);
        given.states.emplace_back(chunk.bytes);
      }
      given.chunks.push_back((lines ? "L:" : "P:") + std::string(chunk.bytes));
    };
  }
  Harness& feed(std::string_view bytes) {
    splitter.feed(bytes, sink_);
    return *this;
  }
  Harness& stale() {
    splitter.flush_stale(sink_);
    return *this;
  }
  Harness& wait() {  // as long as a prompt takes
    for (int i = 0; i <= kPromptPatience; ++i) stale();
    return *this;
  }
  Harness& finish() {
    splitter.finish(sink_);
    return *this;
  }
  LineSplitter splitter;
  Given given;

 private:
  LineSplitter::Sink sink_;
};

std::string lines_of(std::string_view bytes) { return Harness().feed(bytes).finish().given.lines; }

const char* const kBar45 = "train:  45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3]";
const char* const kBar46 = "train:  46%|████▌     | 460/1000 [00:12<00:15, 35.9it/s, loss=2.2]";
const char* const kBar100 = "train: 100%|██████████| 1000/1000 [00:28<00:00, 35.9it/s, loss=1.9]";

TEST(LineSplitter, ManyLinesAreOneChunkAndTheBytesOfTheInput) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  Harness h;
  h.feed(text);
  ASSERT_EQ(h.given.chunks.size(), 1u);
  EXPECT_EQ(h.given.lines, text);
  EXPECT_FALSE(h.splitter.has_tail());
}

TEST(LineSplitter, ALineTornBetweenReads) {
  Harness h;
  h.feed("one\ntw");
  EXPECT_EQ(h.given.lines, "one\n");
  EXPECT_TRUE(h.splitter.has_tail());
  h.feed("o\nthree\nfo").finish();
  EXPECT_EQ(h.given.lines, "one\ntwo\nthree\nfo\n");
  EXPECT_EQ(h.given.cuts, 1);
}

TEST(LineSplitter, BlankLinesNulBytesAndBinaryStay) {
  std::string text("\n\na\0b\n\xff\xfe\n\n", 10);
  EXPECT_EQ(lines_of(text), text);
}

TEST(LineSplitter, CrLfEndsALine) {
  EXPECT_EQ(lines_of("one\r\ntwo\r\n\r\nthree\r\n"), "one\ntwo\n\nthree\n");
  Harness h;
  h.feed("one\r");
  EXPECT_EQ(h.given.lines, "");
  h.feed("\ntwo\r\n");
  EXPECT_EQ(h.given.lines, "one\ntwo\n");
}

TEST(LineSplitter, ABarIsStatesAndItsEndALine) {
  Harness h;
  h.feed(std::string("\r") + kBar45).feed(std::string("\r") + kBar46).feed(std::string("\r") + kBar100 + "\n");
  EXPECT_EQ(h.given.states, (std::vector<std::string>{kBar45, kBar46}));
  EXPECT_EQ(h.given.lines, std::string(kBar100) + "\n");
}

TEST(LineSplitter, OfStatesReadTogetherTheLatestIsGiven) {
  Harness h;
  h.feed(std::string("\r") + kBar45 + "\r" + kBar46 + "\rx");
  EXPECT_EQ(h.given.states, (std::vector<std::string>{kBar46}));
}

TEST(LineSplitter, TheFinalLineOfABarBeginsItsChunk) {
  Harness h;
  h.feed(std::string("a\nb\n\r") + kBar45 + "\r" + kBar100 + "\nafter\n");
  EXPECT_EQ(h.given.chunks, (std::vector<std::string>{"L:a\nb\n", std::string("P:") + kBar45, "L:" + std::string(kBar100) + "\nafter\n"}));
}

TEST(LineSplitter, BarsThatEndWithCarriageReturn) {
  Harness h;
  h.feed("step 0/3\r").feed("step 1/3\r").feed("step 2/3\r").feed("step 3/3\ndone\n");
  EXPECT_EQ(h.given.states, (std::vector<std::string>{"step 0/3", "step 1/3", "step 2/3"}));
  EXPECT_EQ(h.given.lines, "step 3/3\ndone\n");
}

TEST(LineSplitter, OtherOverwrittenTextIsALineOnce) {
  EXPECT_EQ(lines_of("loading\rloading\rloading\rready\n"), "loading\nready\n");
  EXPECT_EQ(lines_of("x\rx\n\rx\n"), "x\nx\n");
}

TEST(LineSplitter, WritingAboveABar) {  // tqdm.write()
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\r            \rhello\n\r" + kBar46 + "\r" + kBar100 + "\n"),
            "hello\n" + std::string(kBar100) + "\n");
}

TEST(LineSplitter, ABarErasedAtTheEndLeavesNothing) {
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\r                    \r"), "");
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\r\x1b[2K"), "");
}

// Captured from tqdm 4.64.1: an inner bar with position=1 and leave=False, and tqdm.write().
TEST(LineSplitter, NestedBarsOfTqdm) {
  const std::string outer0 = "train:   0%|          | 0/3 [00:00<?, ?it/s]",
                    outer1 = "train:  33%|███▎      | 1/3 [00:00<00:00,  4.15it/s]";
  const std::string inner0 = "eval:   0%|          | 0/2 [00:00<?, ?it/s]", inner1 = "eval:  50%|█████     | 1/2 [00:00<00:00,  8.32it/s]";
  const std::string up = "\x1b[A", blank = "\r                         ";
  Harness h;
  for (const std::string& part : {"\r" + outer0,
                                  std::string("\n"),
                                  "\r" + inner0,
                                  up,
                                  std::string("\n"),
                                  "\r" + inner1,
                                  up,
                                  std::string("\n"),
                                  blank,
                                  up,
                                  blank,
                                  std::string("\rhello\n"),
                                  "\r" + outer0,
                                  "\r" + outer1,
                                  std::string("\n"),
                                  "\r" + inner0,
                                  up,
                                  std::string("\n"),
                                  "\r" + inner1,
                                  up,
                                  blank,
                                  "\r" + outer1,
                                  std::string("\n")})
    h.feed(part);
  h.finish();
  EXPECT_EQ(h.given.lines, "hello\n" + outer1 + "\n") << "only text and the final bar";
  EXPECT_EQ(h.given.states.front(), outer0);
  EXPECT_NE(std::find(h.given.states.begin(), h.given.states.end(), inner1), h.given.states.end());
}

TEST(LineSplitter, ABarThatEndsEarlyIsALine) {  // a loop left by break
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\nbye\n"), std::string(kBar45) + "\nbye\n");
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\n\n\nbye\n"), std::string(kBar45) + "\n\n\nbye\n");
  EXPECT_EQ(lines_of(std::string("\r") + kBar45 + "\n\r" + kBar46 + "\n"), std::string(kBar45) + "\n" + kBar46 + "\n");
  Harness h;
  h.feed(std::string("\r") + kBar45 + "\n").stale().stale();
  EXPECT_EQ(h.given.lines, std::string(kBar45) + "\n");
}

TEST(LineSplitter, APromptIsGivenAfterAWhileAndItsEndOnce) {
  Harness h;
  h.feed("Password: ");
  for (int i = 0; i < kPromptPatience; ++i) h.stale();
  EXPECT_EQ(h.given.lines, "");
  h.stale();
  EXPECT_EQ(h.given.lines, "Password: \n");
  EXPECT_EQ(h.given.cuts, 1);
  h.feed("\nnext\n");
  EXPECT_EQ(h.given.lines, "Password: \nnext\n");
  h.feed("a?").wait().feed("b\n");
  EXPECT_EQ(h.given.lines, "Password: \nnext\na?\nb\n");
  h.feed("c:").wait().feed("\r\nd\n");
  EXPECT_EQ(h.given.lines, "Password: \nnext\na?\nb\nc:\nd\n");
}

TEST(LineSplitter, WhatIsAPrompt) {
  for (const char* text : {"Continue? [y/N] ", "(Pdb) ", ">>> ", "root# ", "Loading...", "请输入：", "\x1b[1mName:\x1b[0m "})
    EXPECT_EQ(Harness().feed(text).wait().given.cuts, 1) << text;
  for (const char* text : {"half a li", "loss 2.3", "  ", "x"}) EXPECT_EQ(Harness().feed(text).wait().given.cuts, 0) << text;
}

// A program stopped, or blocked by us, in the middle of a block of output: its line is not torn, however long it takes.
TEST(LineSplitter, AnUnfinishedLineWaitsForItsEnd) {
  Harness h;
  h.feed("one\ntw").wait().wait().feed("o\n");
  EXPECT_EQ(h.given.lines, "one\ntwo\n");
  Harness blocks;
  blocks.feed(std::string(4090, 'x') + "\nlong:").wait().feed(" end\n");
  EXPECT_EQ(blocks.given.lines, std::string(4090, 'x') + "\nlong: end\n") << "4096 bytes: the end of a block";
}

TEST(LineSplitter, AStaleBarIsAStateAndStillItsLine) {
  Harness h;
  h.feed(std::string("\r") + kBar45).stale().stale().stale().stale();
  EXPECT_EQ(h.given.states, (std::vector<std::string>{kBar45}));
  h.feed("\n").finish();
  EXPECT_EQ(h.given.lines, std::string(kBar45) + "\n");
}

TEST(LineSplitter, LongLinesAreCutBetweenCharacters) {
  std::string line = "x";
  while (line.size() < 3 * kMaxLineBytes) line += "漢";
  for (size_t step : {line.size() + 1, size_t{1000}, kMaxLineBytes}) {
    Harness h;
    std::string text = line + "\nnext\n";
    for (size_t at = 0; at < text.size(); at += step) h.feed(std::string_view(text).substr(at, step));
    h.finish();
    EXPECT_EQ(h.given.cuts, 3);
    std::string joined;
    size_t begin = 0;
    for (size_t end; (end = h.given.lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
      std::string piece = h.given.lines.substr(begin, end - begin);
      EXPECT_LE(piece.size(), kMaxLineBytes);
      EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xc0, 0x80) << "begins inside a character";
      joined += piece;
    }
    EXPECT_EQ(joined, line + "next");
  }
}

TEST(LineSplitter, ALineOfExactlyTheLimitIsWhole) {
  std::string line(kMaxLineBytes, 'y');
  Harness h;
  h.feed(line + "\nz\n").finish();
  EXPECT_EQ(h.given.lines, line + "\nz\n");
  EXPECT_EQ(h.given.cuts, 0);
}

const std::string& torn_text() {
  static const std::string text =
      std::string("start\n\r") + kBar45 + "\r" + kBar46 + "\r                \rhello 漢字\r\nloading\rready\r\n\n\r" + kBar45 + "\n\r" +
      "eval:  50%|█████     | 1/2 [00:00<00:00,  8.32it/s]" + "\x1b[A\r" + kBar100 + "\nend\x1b[0m\n\xf0\x9f\x9a\x80";
  return text;
}

TEST(LineSplitter, TheSameWhereverTheInputIsTorn) {
  const std::string& text = torn_text();
  std::string expected = lines_of(text);
  EXPECT_EQ(expected, "start\nhello 漢字\nloading\nready\n\n" + std::string(kBar100) + "\nend\x1b[0m\n🚀\n");
  for (size_t i = 0; i <= text.size(); ++i)
    for (size_t j = i; j <= text.size(); j += 7)
      ASSERT_EQ(Harness().feed(text.substr(0, i)).feed(text.substr(i, j - i)).feed(text.substr(j)).finish().given.lines, expected)
          << i << " " << j;
}

// Without "\r" and without a pause, what comes out is what went in.
TEST(LineSplitter, PlainTextComesOutByteForByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    size_t size = random() % 5000;
    while (text.size() < size) text += random() % 20 == 0 ? '\n' : static_cast<char>(random() % 256);
    std::replace(text.begin(), text.end(), '\r', '\0');
    Harness h;
    for (size_t at = 0; at < text.size();) {
      size_t n = 1 + random() % 400;
      h.feed(std::string_view(text).substr(at, n));
      at += n;
    }
    h.finish();
    if (!text.empty() && text.back() != '\n') text += '\n';
    ASSERT_EQ(h.given.lines, text) << "round " << round;
  }
}

// With "\r", pauses and everything, no visible byte of what is not a bar is lost or moved.
TEST(LineSplitter, NoTextIsLostAmongBars) {
  std::mt19937 random(11);
  const std::vector<std::string> pieces = {"\r",
                                           "\n",
                                           "\r\n",
                                           "word",
                                           "word",
                                           " ",
                                           "\x1b[A",
                                           "\n\r",
                                           "漢",
                                           std::string("\r") + kBar45,
                                           std::string("\r") + kBar46,
                                           std::string("\r") + kBar100 + "\n",
                                           "\x1b[31m",
                                           "\n"};
  for (int round = 0; round < 500; ++round) {
    Harness h;
    int words = 0;
    for (int i = 0; i < 30; ++i) {
      std::string piece = pieces[random() % pieces.size()];
      if (piece == "word") piece = "\nw" + std::to_string(words++) + "\n";  // its own, unmistakable line
      h.feed(piece);
      if (random() % 10 == 0) h.wait();
    }
    h.finish();
    size_t at = 0;
    for (int i = 0; i < words; ++i) {
      size_t found = h.given.lines.find("w" + std::to_string(i) + "\n", at);
      ASSERT_NE(found, std::string::npos) << "round " << round << " word " << i << " in " << h.given.lines;
      at = found;
    }
  }
}

}  // namespace
}  // namespace phalanx::logs
