#include "view/terminal/capabilities.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace phalanx::view {
namespace {

bool same_file(int a, int b) {
  struct stat x{}, y{};
  return ::fstat(a, &x) == 0 && ::fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino && x.st_rdev == y.st_rdev;
}

}  // namespace

TerminalCapabilities detect_terminal(int out, int err, const Environment& environment, Choice colour) {
  TerminalCapabilities s;
  s.out = out;
  s.err = err;
  s.out_terminal = ::isatty(out) == 1;
  s.err_terminal = ::isatty(err) == 1;
  s.same = same_file(out, err);
  std::string term = environment("TERM");
  s.cursor = !term.empty() && term != "dumb";
  s.utf8 = locale_is_utf8(environment);
  std::string force = environment("CLICOLOR_FORCE");
  auto coloured = [&](bool terminal) {
    if (colour != Choice::kAuto) return colour == Choice::kOn;
    if (!environment("NO_COLOR").empty()) return false;
    if (!force.empty() && force != "0") return true;
    return terminal && s.cursor;
  };
  s.out_colour = coloured(s.out_terminal);
  s.err_colour = coloured(s.err_terminal);
  return s;
}

size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace phalanx::view
