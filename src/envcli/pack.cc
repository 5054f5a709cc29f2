// pack: an environment as one file. unpack: the file as an environment at another place.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "envmove/archive/pack.h"
#include "envmove/archive/unpack.h"
#include "os/clock.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::envcli {
namespace {

using base::ErrorKind;
using words::tr;

base::Result<os::Fd> aside_file(const std::string& beside) {
  std::string path = beside + ".XXXXXX";
  os::Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) {
    base::Error error = base::system_error("create a file beside", beside);
    error.kind = ErrorKind::kUsage;
    return error;
  }
  (void)::unlink(path.c_str());
  return file;
}

}  // namespace

base::Result<int> pack(const Request& request, const envmove::Environment& environment) {
  if (request.output.empty())
    return base::fail(ErrorKind::kUsage, "env pack needs the name of the file to write")
        .with_hint(fmt::format("phalanx env pack {} -o environment.tar.zst", base::shell_quote(request.environment)));
  TRY_ASSIGN(const envmove::Packing packing, envmove::packing_of(request.output));
  const base::Language language = language_here();
  const os::Mono began = os::mono_now();
  sync::Aside aside;
  TRY_ASSIGN(aside.file, aside_file(request.output));
  envmove::Carried carried;
  {
    ProgressLine line(tr(language, "reading"), language);
    const envmove::CarryProgress progress{[&](uint64_t bytes) { line.bytes(bytes); }, std::ref(line)};
    TRY_ASSIGN(carried, envmove::carry(environment, {environment.root, index_folder()}, aside, progress));
  }
  say_what_is_special(carried, environment.base, language);
  envmove::Packed packed;
  {
    ProgressLine line(tr(language, "packing"), language);
    TRY_ASSIGN(packed, envmove::pack(environment, carried, aside, packing, request.output, os::kOwnProgram, std::ref(line)));
  }
  print(stdout,
        tr(language, "{}: {} files, {} packed into {} in {}", request.output, carried.manifest.files(),
           base::format_bytes(carried.manifest.bytes()), base::format_bytes(packed.bytes), base::format_duration(os::mono_now() - began)) +
            "\n");
  return 0;
}

base::Result<int> unpack(const Request& request) {
  const base::Language language = language_here();
  const os::Mono began = os::mono_now();
  TRY_ASSIGN(const std::string place,
             plain_place(request.place.starts_with('/') ? request.place : os::current_folder() + "/" + request.place));
  envmove::Unpacked unpacked;
  {
    ProgressLine first(tr(language, "unpacking"), language), then(tr(language, "repairing"), language);
    const envmove::UnpackProgress progress{[&](uint64_t bytes) { first.bytes(bytes); }, std::ref(then)};
    TRY_ASSIGN(unpacked, envmove::unpack(request.environment, place, progress));
  }
  if (!unpacked.untouched.empty())
    print(stderr, tr(language, "{} files of other formats name it as well and are left as they are:", unpacked.untouched.size()) + "\n" +
                      list_of(unpacked.untouched, false, "", language));
  print(stdout, tr(language, "{}: {} files, {} unpacked and {} repaired in {}", place, unpacked.extracted.files,
                   base::format_bytes(unpacked.extracted.bytes), unpacked.rewritten, base::format_duration(os::mono_now() - began)) +
                    "\n");
  say_if_activate_fails(place, language);
  TRY_ASSIGN(const envmove::Environment environment, envmove::read_environment(place));
  Request verified = request;
  verified.hashes = true;
  return verify(verified, environment);
}

}  // namespace phalanx::envcli
