// What our stdout and stderr are, and how we may write to them. Looked at once, at the start.
#pragma once

#include <cstddef>

#include "view/speech.h"

namespace phalanx::view {

enum class Choice { kAuto, kOn, kOff };

struct TerminalCapabilities {
  int out = 1, err = 2;
  bool out_terminal = false, err_terminal = false;
  bool same = false;  // stdout and stderr are one thing: what is written to both must keep its order
  bool out_colour = false, err_colour = false;
  bool cursor = false;  // the terminal can overwrite a line (TERM is set and not "dumb")
  bool utf8 = false;
};

// Colour: `colour` if not kAuto; else none with NO_COLOR; else yes with CLICOLOR_FORCE; else on a terminal that is not dumb.
// (https://no-color.org, https://bixense.com/clicolors)
TerminalCapabilities detect_terminal(int out, int err, const Environment& environment, Choice colour = Choice::kAuto);

// Columns of the terminal behind fd now; 80 when it does not say.
size_t terminal_columns(int fd);

}  // namespace phalanx::view
