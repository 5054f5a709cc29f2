#include "engine/data/files/check_files.h"

#include <fmt/format.h>

#include <map>

#include "base/try.h"
#include "engine/data/files/mapped_file.h"

namespace phalanx::engine::data {

base::Result<std::vector<std::string>> check_files(const std::string& list, const SetOptions& options, Findings& findings) {
  TRY_ASSIGN(std::vector<std::string> paths, find_files(list));
  SetOptions alone = options;
  alone.validation_files.clear();
  alone.validation = 0;
  std::vector<std::string> good;
  std::multimap<std::pair<size_t, uint64_t>, std::string> by_print;
  for (const std::string& path : paths) {
    auto opened = open_paths({path}, alone);
    if (!opened.ok()) {
      const base::Error& error = opened.error();
      findings.add(kBadFile, [&] { return fmt::format("{}: {}", path, error.cause.empty() ? error.message : error.cause); });
      continue;
    }
    good.push_back(path);
    TRY_ASSIGN(MappedFile file, MappedFile::open(path));
    const std::pair print(file.bytes().size(), file.fingerprint());
    for (auto [it, end] = by_print.equal_range(print); it != end; ++it) {
      auto other = MappedFile::open(it->second);
      if (!other.ok() || other->bytes() != file.bytes()) continue;  // the whole content is compared
      findings.add(kDuplicate, [&, &first = it->second] { return fmt::format("{} and {}", first, path); });
      break;
    }
    by_print.emplace(print, path);
  }
  return good;
}

}  // namespace phalanx::engine::data
