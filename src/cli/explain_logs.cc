#include "cli/explain_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/unicode.h"
#include "diagnosis/log_files.h"
#include "diagnosis/log_verdict.h"
#include "os/files.h"
#include "view/log_view.h"
#include "view/speech.h"
#include "view/surroundings.h"

namespace cli {
namespace {

constexpr size_t kWidest = 110;
constexpr size_t kNarrowest = 40;
constexpr int kNoCause = 1;

bool is_run(const std::string& word, const std::string& runs_folder) {
  return !word.empty() && word.find('/') == std::string::npos && !word.starts_with('.') &&
         os::is_folder(runs_folder + "/" + word + "/ranks");
}

doctor::Words damaged(const std::string& name) {
  std::string file = base::printable(name);
  return {fmt::format("{}: the gzip data ends early or is damaged; what came before was read", file),
          fmt::format("{}：gzip 数据不完整或已损坏，只读取了之前的部分", file)};
}

}  // namespace

bool names_logs(const std::string& word, const std::string& runs_folder) {
  return word == "-" || word == "latest" || word.find('/') != std::string::npos || os::exists(word) || is_run(word, runs_folder);
}

base::Result<int> explain_logs(const std::vector<std::string>& operands, const std::string& runs_folder, bool json) {
  std::vector<diagnosis::LogFile> files;
  for (const std::string& word : operands) {
    bool run = word != "-" && !os::exists(word) && word.find('/') == std::string::npos;
    if (run && !is_run(word, runs_folder))
      return base::fail(base::ErrorKind::kConfig, fmt::format("there is no run {} in {}", base::quote(word), base::quote(runs_folder)));
    TRY_ASSIGN(std::vector<diagnosis::LogFile> found, diagnosis::find_logs(run ? runs_folder + "/" + word : word));
    files.insert(files.end(), found.begin(), found.end());
  }
  if (std::count_if(files.begin(), files.end(), [](const diagnosis::LogFile& file) { return file.name == "-"; }) > 1)
    return base::fail(base::ErrorKind::kUsage, "standard input can be read only once").with_hint("give \"-\" once");

  diagnosis::LogScan scan;
  std::vector<doctor::Words> notes;
  for (const diagnosis::LogFile& file : files) {
    TRY_ASSIGN(diagnosis::ReadLog read, diagnosis::read_log(scan, file));
    if (read.damaged) notes.push_back(damaged(file.name));
  }
  diagnosis::LogVerdict verdict = diagnosis::judge_logs(scan.finish());
  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  size_t columns = std::clamp(view::terminal_columns(STDOUT_FILENO), kNarrowest, kWidest);
  std::string out = json ? base::to_text(view::log_json(verdict, notes), 2) + "\n" : view::log_report(verdict, notes, language, columns);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return verdict.cause ? 0 : kNoCause;
}

}  // namespace cli
