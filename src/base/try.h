// The short names of PHALANX_TRY and PHALANX_TRY_ASSIGN, for our own sources. No header may include this one: an installed header would
// bring the names into the programs that use the library.
#pragma once

#include "base/result.h"

#define TRY(expr) PHALANX_TRY(expr)
#define TRY_ASSIGN(declaration, expr) PHALANX_TRY_ASSIGN(declaration, expr)
