// The rows of software by what they look at; doctor/checks/software/rows.cc puts them together.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> program_rows();      // the program, its first line, its Python
std::span<const Row> package_rows();      // what is installed, and where hosts differ
std::span<const Row> library_rows();      // glibc, CUDA, leftovers of builds
std::span<const Row> environment_rows();  // variables

}  // namespace phalanx::doctor
