#pragma once

#include "base/json.h"

// What tests/train/optim/oracle.py prints, asked once; null where this machine's Python has no torch.
const phalanx::base::Json* optim_oracle();
