// An archive from anywhere, unpacked: nothing is written outside of its folder, whatever it says.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "envmove/archive/extract.h"
#include "sync/store.h"

using namespace phalanx;

namespace {

// One folder for all inputs: "above/inside", of which only "inside" may change.
struct Place {
  std::string above = "/tmp/phalanx-fuzz-archive-XXXXXX";
  os::Fd folder;
  struct stat before{};
  Place() {
    if (::mkdtemp(above.data()) == nullptr) abort();
    folder = os::Fd(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (::mkdirat(folder.get(), "inside", 0700) != 0 || ::fstat(folder.get(), &before) != 0) abort();
  }
  ~Place() {
    (void)sync::remove_tree(folder.get(), "inside");
    (void)::rmdir(above.c_str());
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Place place;
  const os::Fd archive(::memfd_create("archive", MFD_CLOEXEC));
  if (::write(archive.get(), data, size) != static_cast<ssize_t>(size) || ::lseek(archive.get(), 0, SEEK_SET) != 0) return 0;
  const os::Fd inside(::openat(place.folder.get(), "inside", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto done = envmove::extract(archive, inside, {.bytes = 1 << 20, .entries = 200}, {});
  if (done.ok() && (done->bytes > 1 << 20 || done->files > 200)) abort();
  const auto names = sync::names_in(inside.get());
  if (names.ok())
    for (const std::string& name : *names)
      if (!sync::remove_tree(inside.get(), name)) (void)::unlinkat(inside.get(), name.c_str(), 0);
  const auto above = sync::names_in(place.folder.get());
  if (!above.ok() || above->size() != 1) abort();
  return 0;
}
