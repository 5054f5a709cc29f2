// What a program of the machine prints, where nothing else can say it: nft, iptables, getent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::machine {

// Standard output (at most max_bytes) of a program found in the usual folders of system tools; its standard error is dropped.
// None: it is not there, failed, said more, or took longer than `most` (it is then killed).
std::optional<std::string> tool_output(const std::string& program, const std::vector<std::string>& arguments,
                                       std::chrono::milliseconds most, size_t max_bytes = 1 << 20);

}  // namespace phalanx::machine
