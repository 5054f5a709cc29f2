#include "engine/data/corpus.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "os/fd.h"

namespace engine::data {
namespace {

base::Error cannot_read(const std::string& path, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("cannot read the corpus {}", base::quote(path)))
      .because(std::move(why))
      .with_hint("set data.corpus to a text file; tools/make_corpus makes one from installed manuals");
}

}  // namespace

base::Result<Corpus> Corpus::open(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return cannot_read(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return cannot_read(path, "it is not a regular file");
  if (info.st_size == 0) return cannot_read(path, "it is empty");
  const auto size = static_cast<size_t>(info.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return cannot_read(path, std::strerror(errno));
  return Corpus(std::string_view(static_cast<const char*>(mapped), size));
}

Corpus::~Corpus() {
  if (!text_.empty()) munmap(const_cast<char*>(text_.data()), text_.size());
}

uint64_t Corpus::fingerprint() const {
  constexpr size_t kPage = 4096, kPages = 64;
  comm::Fingerprint print;
  print.add(static_cast<int64_t>(text_.size()));
  const size_t step = std::max(kPage, text_.size() / kPages);
  for (size_t at = 0; at < text_.size(); at += step) print.add(text_.substr(at, kPage));
  return print.value();
}

}  // namespace engine::data
