// The rows' own example lines as terminals, launchers and collectors hand them on: each must still be counted under its row's code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "diagnosis/logs/scan.h"

namespace phalanx::diagnosis {
namespace {

std::set<std::string> codes_in(LogScan& scan, const std::string& text) {
  LogFile file;
  file.name = "a.log";
  scan.begin_file(std::move(file));
  scan.feed(text);
  scan.end_file();
  std::set<std::string> codes;
  for (const LogEvent& event : scan.finish().events) codes.insert(std::string(event.signature->code));
  return codes;
}

bool fails(const Signature& row) { return row.role == Role::kRoot || row.role == Role::kSymptom; }

std::string broken_at(std::string_view text, size_t columns) {
  std::string out;
  for (; text.size() > columns; text.remove_prefix(columns)) out += std::string(text.substr(0, columns)) + "\n";
  return out + std::string(text) + "\n";
}

std::string broken_at_words(std::string_view text, size_t columns) {
  std::string out, line;
  for (std::string_view word : base::split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > columns) out += std::exchange(line, "") + "\n";
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return out + line + "\n";
}

std::string as_json(std::string_view text, const char* key) {
  base::Json object;
  object["time"] = "2024-11-20T08:47:12.345Z";
  object["stream"] = "stderr";
  object[key] = std::string(text);
  return base::to_text(object) + "\n";
}

struct Count {
  int right = 0, all = 0;
  double share() const { return all == 0 ? 0 : static_cast<double>(right) / all; }
};

Count count(const char* name, const std::function<std::string(std::string_view)>& change,
            const std::function<bool(const Signature&)>& which = fails) {
  static LogScan scan;
  Count out;
  for (const Signature& row : codes::signatures()) {
    if (!which(row)) continue;
    ++out.all;
    if (codes_in(scan, change(row.line)).count(std::string(row.code))) ++out.right;
    else std::printf("  %s: %s: %s\n", name, std::string(row.code).c_str(), std::string(row.line).c_str());
  }
  std::printf("%-24s %d of %d\n", name, out.right, out.all);
  return out;
}

TEST(LogVariants, AsTheyAre) {
  EXPECT_EQ(count("as they are", [](auto line) { return std::string(line) + "\n"; }).share(), 1);
}

TEST(LogVariants, BrokenAtAWidth) {
  for (size_t columns : {72, 80, 100, 132}) {
    EXPECT_GE(count(fmt::format("at {} columns", columns).c_str(), [&](auto line) { return broken_at(line, columns); }).share(), 0.97);
    EXPECT_GE(count(fmt::format("at words, {}", columns).c_str(), [&](auto line) { return broken_at_words(line, columns); }).share(), 0.97);
  }
}

TEST(LogVariants, WithTagsOfLaunchersAndCollectors) {
  for (const char* tag : {"(RayTrainWorker pid=4021, ip=10.0.0.2) ", "[task 5] ", "[stderr] ", "[node-3]: ", "[pod/trainer-0/pytorch] ",
                          "[2024-11-20 08:47:12,345][rank 3] ", "2024-11-20T08:47:12.345Z stderr F ", "[rank3]: "})
    EXPECT_GE(count(tag, [&](auto line) { return tag + std::string(line) + "\n"; }).share(), 0.97);
}

TEST(LogVariants, AsJson) {
  for (const char* key : {"log", "message", "msg", "textPayload"})
    EXPECT_GE(count(key, [&](auto line) { return as_json(line, key); }).share(), 0.97);
}

TEST(LogVariants, WithoutTheirFirstCharacters) {
  for (size_t lost : {6, 12})
    // A literal of which less than six bytes are left is not looked for.
    EXPECT_GE(count(fmt::format("{} characters lost", lost).c_str(),
                    [&](auto line) { return std::string(line.substr(std::min(lost, line.size()))) + "\n"; })
                  .share(),
              lost > 6 ? 0.96 : 0.97);
}

// What torch prints of NCCL's warning: its text alone.
TEST(LogVariants, AsLastError) {
  constexpr std::string_view kWarn = "NCCL WARN ";
  auto warns = [&](const Signature& row) { return fails(row) && row.line.find(kWarn) != row.line.npos; };
  auto change = [&](std::string_view line) {
    return "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\n" +
           std::string(line.substr(line.find(kWarn) + kWarn.size())) + "\n";
  };
  EXPECT_GE(count("Last error:", change, warns).share(), 0.97);
}

}  // namespace
}  // namespace phalanx::diagnosis
