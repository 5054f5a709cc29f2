// A file that becomes shorter while it is mapped raises SIGBUS where its lost pages are read. With the handler installed the process says
// which file it was and exits, instead of dying without a word.
#pragma once

#include <cstddef>
#include <string>

namespace phalanx::engine::data {

inline constexpr int kCutFileExit = 2;  // the exit code of an error in what the user gave (base/result.h, kConfig)

// What `bytes` bytes from `begin` are mapped from. Any thread. forget() before they are unmapped.
void remember_mapping(const void* begin, size_t bytes, const std::string& path);
void forget_mapping(const void* begin);

// For the whole process, once. A SIGBUS anywhere else goes to the handler that was there before.
void name_cut_files();

}  // namespace phalanx::engine::data
