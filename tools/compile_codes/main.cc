// compile_codes FOLDER PAGES SIGNATURES VALUES RULES CATALOGUE BUGS ADVICE: codes/ → the launcher's tables, as C++ sources.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/try.h"
#include "compile_codes/advice.h"
#include "compile_codes/bugs.h"
#include "compile_codes/catalogue.h"
#include "compile_codes/pages.h"
#include "compile_codes/rules.h"
#include "compile_codes/signatures.h"
#include "compile_codes/source_text.h"
#include "compile_codes/values.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

base::Status write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return codes::wrong(path, "cannot be written");
  return base::ok();
}

base::Status compile(const fs::path& folder, const fs::path& pages, const fs::path& signatures, const fs::path& values,
                     const fs::path& rules, const fs::path& catalogue, const fs::path& known_bugs, const fs::path& advice) {
  TRY_ASSIGN(codes::PageTable table, codes::compile_pages(folder));
  TRY_ASSIGN(const auto annotations, codes::read_annotations(folder, table.names));
  TRY_ASSIGN(std::string rows, codes::compile_signatures(folder, annotations, table.names));
  TRY_ASSIGN(std::string tables, codes::compile_values(folder / "values", table.names));
  TRY_ASSIGN(std::string checks, codes::compile_rules(folder, table.names));
  TRY_ASSIGN(std::string messages, codes::compile_catalogue(folder / "catalogue", annotations));
  TRY_ASSIGN(std::string bugs, codes::compile_bugs(folder / "bugs"));
  TRY_ASSIGN(std::string on_messages, codes::compile_advice(folder / "advice"));
  TRY(write(pages, table.source));
  TRY(write(signatures, rows));
  TRY(write(values, tables));
  TRY(write(rules, checks));
  TRY(write(catalogue, messages));
  TRY(write(known_bugs, bugs));
  return write(advice, on_messages);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fputs("usage: compile_codes FOLDER PAGES SIGNATURES VALUES RULES CATALOGUE BUGS ADVICE\n", stderr);
    return 2;
  }
  base::Status done = compile(argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7], argv[8]);
  if (done.ok()) return 0;
  std::fputs(done.error().render().c_str(), stderr);
  return base::exit_code(done.error().kind);
}
