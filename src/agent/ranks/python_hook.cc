#include "agent/ranks/python_hook.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::agent {
namespace {

// {0}: the signal's number. Python 3.3 and newer; whatever goes wrong, the program starts as if the hook were not there.
constexpr const char* kHook =
    R"(# Written by phalanx run --python-hook. Lets Python tell where it is when the run stands still; see docs/guides/hangs.md.
def _phalanx_hook():
    import os, sys
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != here]
    kept = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and os.path.abspath(p) != here]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)
    path = os.environ.pop("{1}", None)
    if path:
        try:
            import faulthandler
            faulthandler.register({0}, file=open(path, "ab", buffering=0), all_threads=True, chain=False)
        except Exception:
            pass
    import importlib.machinery, importlib.util
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_phalanx_hook()
)";

}  // namespace

std::string write_python_hook(const std::string& scratch) {
  std::string folder = scratch + "/hook";
  std::string text = base::replace_all(base::replace_all(kHook, "{0}", std::to_string(hook_signal())), "{1}", kStackFileVariable);
  bool written = os::make_folders(folder).ok() && os::write_file_atomic(folder + "/sitecustomize.py", text, 0600).ok();
  return written ? folder : "";
}

void add_python_hook(Environment& environment, const std::string& folder, const std::string& stack_file) {
  std::string& path = environment["PYTHONPATH"];
  path = path.empty() ? folder : folder + ":" + path;
  environment[kStackFileVariable] = stack_file;
}

bool catches_hook_signal(pid_t pid) {
  base::Result<std::string> status = os::read_file(fmt::format("/proc/{}/status", pid), 64 << 10);
  if (!status.ok()) return false;
  size_t at = status->find("\nSigCgt:");
  if (at == std::string::npos) return false;
  uint64_t mask = std::strtoull(status->c_str() + at + 8, nullptr, 16);
  return ((mask >> (hook_signal() - 1)) & 1) != 0;
}

}  // namespace phalanx::agent
