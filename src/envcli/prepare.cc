// prepare: an environment as the launcher sends it to hosts (sync/prepared.h).
#include <fcntl.h>
#include <unistd.h>

#include <functional>

#include "base/try.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "envmove/carry/carry.h"
#include "sync/prepared.h"
#include "words/message.h"

namespace phalanx::envcli {

using base::ErrorKind;
using words::tr;

base::Result<int> prepare(const Request& request, const envmove::Environment& environment) {
  if (::fcntl(kAsideFd, F_GETFL) < 0 || ::fcntl(kAnswerFd, F_GETFL) < 0)
    return base::fail(ErrorKind::kUsage, "only phalanx env push starts this").with_hint("phalanx help env");
  const base::Language language = language_here();
  std::string to = environment.root;
  if (!request.to.empty()) { TRY_ASSIGN(to, plain_place(request.to)); }
  sync::Aside aside;
  aside.file = os::Fd(::fcntl(kAsideFd, F_DUPFD_CLOEXEC, 0));
  envmove::Carried carried;
  {
    ProgressLine line(tr(language, "reading"), language);
    const envmove::CarryProgress progress{[&](uint64_t bytes) { line.bytes(bytes); }, std::ref(line)};
    TRY_ASSIGN(carried, envmove::carry(environment, {to, index_folder()}, aside, progress));
  }
  say_what_is_special(carried, environment.base, language);
  say_if_activate_fails(to, language);
  const sync::Prepared prepared{environment.root, to, carried.mode, std::move(carried.manifest), std::move(aside.at)};
  TRY(os::write_all(kAnswerFd, sync::encode(prepared), "the list of the environment"));
  return 0;
}

}  // namespace phalanx::envcli
