// The catalogue of messages: what of other software's messages is attributed to its source, and what is answered. The numbers are printed
// per source and may not fall.
#include "diagnosis/logs/known_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "base/text.h"
#include "codes/advice.h"
#include "diagnosis/logs/advice.h"
#include "diagnosis/logs/family.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

LogFacts read(const std::string& text) {
  static LogScan scan;
  scan.begin_file({.name = "a.log", .host = {}});
  scan.feed(text);
  scan.end_file();
  return scan.finish();
}

// As the program of the file prints it.
std::string framed(std::string_view source, const std::string& file, const std::string& text) {
  if (source == "nccl") return "gpu01:90:401 [0] " + file + ":90 NCCL WARN " + text;
  if (source == "ofi") return "gpu01:90:401 [0] f:90 NCCL WARN NET/OFI " + text;
  if (file.ends_with(".py")) return "RuntimeError: " + text;
  return "[rank3]:[E1120 08:47:12.345678901 " + file.substr(file.rfind('/') + 1) + ":616] " + text;
}

// The rows of a table: without comments and the line of columns.
std::vector<std::vector<std::string>> table(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(PHALANX_TEST_DATA + path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("words:text")) continue;
    std::vector<std::string> cells;
    for (std::string_view cell : base::split(std::string_view(line), '\t')) cells.emplace_back(cell);
    rows.push_back(std::move(cells));
  }
  return rows;
}

constexpr std::array<std::string_view, 10> kAnnotated = {"accelerate", "deepspeed", "gloo", "lightning", "llamafactory",
                                                         "megatron",   "nccl",      "ofi",  "torch",     "transformers"};

// As the tables write them.
std::string words_of(const codes::KnownMessage& message) {
  return std::string(message.words) + (message.then.empty() ? "" : "|" + std::string(message.then));
}

// What begins with the class of an exception, and no tag of a logger.
bool is_exception(std::string_view line) {
  const size_t colon = line.find(": ");
  return line.find("NCCL WARN") == line.npos && !line.starts_with('[') && colon != line.npos && !line.starts_with("WARNING") &&
         line.substr(0, colon).find_first_of(" :'") == line.npos;
}

// An exception in a traceback of its source; of C++, in one of a script.
std::string as_printed(const std::string& line, const std::string& file) {
  if (!is_exception(line)) return line + "\n";
  const std::string package = file.starts_with("op_builder/") ? "deepspeed/ops/" : "";  // where it is installed
  const std::string raised = file.ends_with(".py") ? "/usr/lib/python3/dist-packages/" + package + file : "/job/train.py";
  return "Traceback (most recent call last):\n  File \"" + raised + "\", line 3, in f\n    x()\n" + line + "\n";
}

struct Coverage {
  int all = 0, attributed = 0, wrong = 0, answered = 0;
};

// Of each source, how many of its 40 messages are attributed, and how many have advice or a code of their own: the least that was reached.
struct Least {
  std::string_view source;
  int attributed, answered;
};
constexpr std::array<Least, 10> kLeast = {{{"accelerate", 40, 36},
                                           {"deepspeed", 38, 30},
                                           {"gloo", 38, 1},
                                           {"lightning", 39, 38},
                                           {"llamafactory", 40, 35},
                                           {"megatron", 39, 33},
                                           {"nccl", 36, 19},
                                           {"ofi", 38, 8},
                                           {"torch", 38, 14},
                                           {"transformers", 40, 29}}};

TEST(Catalogue, CoversItsSources) {
  std::map<std::string, Coverage> sources;
  std::ifstream samples(std::string(PHALANX_TEST_DATA) + "/catalogue/messages.tsv");
  for (std::string line; std::getline(samples, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string_view> cells = base::split(line, '\t');
    ASSERT_EQ(cells.size(), 3u) << line;
    Coverage& coverage = sources[std::string(cells[0])];
    std::string shown = framed(cells[0], std::string(cells[1]), std::string(cells[2]));
    ++coverage.all;
    const codes::KnownMessage* known = known_message(shown, cells[1].ends_with(".py") ? cells[1] : "");
    if (known && known->source == cells[0]) ++coverage.attributed;
    else if (known) ++coverage.wrong;
    const LogVerdict verdict = judge_logs(read(as_printed(shown, std::string(cells[1]))));
    if (verdict.cause && (!verdict.cause->advice.empty() || !says_little(verdict.cause->code))) ++coverage.answered;
  }
  for (const Least& least : kLeast) {
    const Coverage& coverage = sources[std::string(least.source)];
    std::printf("%-14s %3d messages: %3d attributed, %d to another source, %3d answered\n", std::string(least.source).c_str(), coverage.all,
                coverage.attributed, coverage.wrong, coverage.answered);
    EXPECT_GE(coverage.attributed, least.attributed) << least.source;
    EXPECT_GE(coverage.answered, least.answered) << least.source;
    EXPECT_LE(coverage.wrong, 1) << least.source;
  }
  EXPECT_EQ(sources.size(), kLeast.size());
}

// Errors that people who train models can meet and act on (internal.tsv says how that was decided), and how many have an annotation:
// an answer, or a code of their own. In percent, the least per source that was asked for; signatures and advice know more of them.
TEST(Catalogue, UserFacingErrorsHaveAnswers) {
  std::set<std::string> internal;
  for (const std::vector<std::string>& row : table("/catalogue/internal.tsv")) internal.insert(row.at(0) + "\t" + row.at(1));
  std::map<std::string, std::pair<int, int>> sources;  // answered, of all
  auto part_of = [](const codes::KnownMessage& message) {
    const bool c10d = message.source == "torch" && !message.file.ends_with(".py");
    return c10d ? std::string("c10d") : std::string(message.source);
  };
  std::set<std::string> annotated;
  for (std::string_view source : kAnnotated)
    for (const std::vector<std::string>& row : table("/../../codes/annotations/" + std::string(source) + ".tsv"))
      annotated.insert(std::string(source) + "\t" + row.at(0));
  for (const codes::KnownMessage& message : codes::known_messages()) {
    const std::string key = std::string(message.source) + "\t" + words_of(message);
    if (message.severity != "error" || internal.contains(key)) continue;
    auto& [answered, all] = sources[part_of(message)];
    ++all;
    if (annotated.contains(key)) ++answered;
  }
  EXPECT_EQ(sources.size(), kAnnotated.size() + 1);
  for (const auto& [source, counts] : sources) {
    const auto [answered, all] = counts;
    std::printf("%-14s %4d user-facing errors: %4d answered (%d %%)\n", source.c_str(), all, answered, answered * 100 / all);
    EXPECT_GE(answered * 100, all * (source == "nccl" || source == "c10d" ? 60 : 40)) << source;
  }
}

// Each answer is given for a line as the software prints it: an exception in its traceback, a warning alone. A line in the midst of a
// longer message is not an event by itself, and need not be.
TEST(Catalogue, EveryAnswerIsGiven) {
  std::map<std::string, std::string> files;
  for (const codes::KnownMessage& message : codes::known_messages())
    files[std::string(message.source) + "\t" + words_of(message)] = message.file;
  size_t rows = 0, parts = 0, shadowed = 0;
  std::string answer;
  for (std::string_view source : kAnnotated)
    for (const std::vector<std::string>& row : table("/../../codes/annotations/" + std::string(source) + ".tsv")) {
      const std::string& line = row.at(4);
      if (row.at(5) != "=") answer = row.at(5);
      if (answer.empty()) continue;
      const LogVerdict verdict = judge_logs(read(as_printed(line, files[std::string(source) + "\t" + row.at(0)])));
      if (row.at(2) == "benign" || row.at(2) == "cascade") continue;
      if (!verdict.cause && !is_exception(line) && line.find("NCCL WARN") == line.npos) {
        ++parts;
        continue;
      }
      ++rows;
      ASSERT_TRUE(verdict.cause) << line;
      const std::string head = answer.substr(0, answer.find('{'));
      const auto& advice = verdict.cause->advice;
      // Another row of the catalogue has longer words of this message, a signature knows from its values what it is, or advice/ has it.
      const std::string& file = files[std::string(source) + "\t" + row.at(0)];
      const codes::KnownMessage* known = known_message(line, file.ends_with(".py") ? file : "");
      // Without a module, words of few bytes are nobody's.
      const bool is_another = !known || row.at(0) != words_of(*known);
      const bool is_decided =
          verdict.cause->code != row.at(1) && (file.ends_with(".py") ? !is_exception(line) : !says_little(verdict.cause->code));
      const auto table = codes::all_advice();
      const bool is_advised = !advice.empty() && std::any_of(table.begin(), table.end(), [&](const codes::Advice& one) {
        const std::string_view begin = one.english.substr(0, one.english.find('{'));
        return !begin.empty() && advice[0].english.starts_with(begin);
      });
      if (is_another || is_decided || is_advised) {
        ++shadowed;
        continue;
      }
      EXPECT_TRUE(std::any_of(advice.begin(), advice.end(), [&](const doctor::Words& said) { return said.english.starts_with(head); }))
          << line << "\n  " << verdict.cause->code << " instead of " << row.at(1) << ": "
          << (advice.empty() ? "no advice" : advice[0].english);
    }
  std::printf("%zu answers given; %zu known by other rows, %zu lines that are parts of messages\n", rows - shadowed, shadowed, parts);
  EXPECT_LE((parts + shadowed) * 5, rows);
  EXPECT_GE(rows, 1500u);
}

TEST(Catalogue, EveryMessageHasWordsAndAFamily) {
  const auto messages = codes::known_messages();
  EXPECT_GE(messages.size(), 6000u);
  for (const codes::KnownMessage& message : messages) {
    EXPECT_GE(message.words.size(), 12u) << message.words;
    EXPECT_FALSE(family_of_message(message).chinese.empty()) << message.source << ' ' << message.file;
  }
}

// What the work went on after is no cause, whatever code it has, and what failed with words of its own is named before it.
TEST(Catalogue, AMessageIsNoCauseWhereWorkWentOnOrSomethingElseFailed) {
  std::string steps;
  for (int step = 1; step <= 300; ++step) steps += "step " + std::to_string(step) + "/300 loss 2.31\n";
  const std::string failure =
      "loading\nTraceback (most recent call last):\n  File \"/job/train.py\", line 3, in f\n    x()\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  for (std::string_view source : kAnnotated)
    for (const std::vector<std::string>& row : table("/../../codes/annotations/" + std::string(source) + ".tsv")) {
      if (row.at(1).empty() || row.at(5).empty()) continue;
      LogVerdict verdict = judge_logs(read("step 0/300 loss 2.4\n" + row.at(4) + "\n" + steps));
      const bool is_nan = verdict.cause && verdict.cause->code == "RUN-NAN";  // steps with a loss that is no number are no work
      EXPECT_TRUE(!verdict.cause || is_nan) << row.at(4) << "\n  " << verdict.cause->code;
      if (is_exception(row.at(4))) continue;  // which ended the program
      verdict = judge_logs(read(row.at(4) + "\n" + failure));
      ASSERT_TRUE(verdict.cause) << row.at(4);
      if (read(row.at(4) + "\n").events.empty()) { EXPECT_EQ(verdict.cause->code, "RUN-OOM-GPU") << row.at(4); }
    }
}

// Warnings that nobody knows, however many, do not hide what comes after them.
TEST(Catalogue, ManyWarningsHideNothing) {
  std::string log;
  for (int i = 0; i < 3000; ++i) log += "gpu01:90:401 [0] a.cc:1 NCCL WARN something of which nobody knows anything\n";
  log += "gpu01:90:401 [0] graph/xml.cc:90 NCCL WARN Could not open XML graph file /etc/nccl/graph.xml : No such file or directory\n";
  const LogVerdict verdict = judge_logs(read(log));
  ASSERT_TRUE(verdict.cause);
  EXPECT_FALSE(verdict.cause->advice.empty());
}

// A script's own messages are nobody's: neither the words of ordinary life nor a package's name attribute them.
TEST(Catalogue, OrdinaryTextIsNobodys) {
  for (const char* line : {
           "ValueError: expected 3 columns, got 4",
           "ERROR: the file could not be read",
           "RuntimeError: the model has to be trained first",
           "Error: unable to open the database",
           "KeyError: 'input_ids'",
           "2024-11-20 08:47:12 ERROR retrying the request in 3 seconds",
           "AssertionError: the number of labels must be equal to the number of images",
           "NameError: name 'deepspeed' is not defined",
           "gpu01:90:401 [0] NCCL WARN",
           "",
       })
    EXPECT_EQ(known_message(line), nullptr) << line << ": " << known_message(line)->words;
}

TEST(Catalogue, AnErrorWithoutASignatureIsAttributedAndNoVerdict) {
  const std::string line = "[rank3]:[E1120 08:47:12.345678901 TCPStore.cpp:616] Responses with wrong ready or not_ready response\n";
  LogVerdict verdict = judge_logs(read("loading\n" + line));
  EXPECT_FALSE(verdict.cause.has_value());
  ASSERT_EQ(verdict.sections.size(), 1u);
  EXPECT_NE(verdict.sections[0].lines.at(0).english.find("PyTorch's store: "), std::string::npos) << verdict.sections[0].lines[0].english;
  // Of an exception the part is told where it was raised in no package.
  verdict =
      judge_logs(read("Traceback (most recent call last):\n  File \"/job/train.py\", line 3, in f\n    x()\n"
                      "ValueError: bnb_4bit_use_double_quant must be a boolean\n"));
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "RUN-EXCEPTION");
  EXPECT_NE(verdict.cause->detail.english.find("a message of accelerate (accelerate/"), std::string::npos) << verdict.cause->detail.english;
}

}  // namespace
}  // namespace phalanx::diagnosis
