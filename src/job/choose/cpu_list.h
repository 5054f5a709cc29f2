// Sets of CPUs as Linux writes them: "0-31,64-95". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::job {

// Ranges, first and last, rising and apart. Text that is not a list is empty; at most 8,192 CPUs.
using CpuList = std::vector<std::pair<int, int>>;

CpuList parse_cpu_list(const std::string& text);
std::string text_of(const CpuList& list);
int64_t count(const CpuList& list);
CpuList join(const CpuList& a, const CpuList& b);
CpuList intersect(const CpuList& a, const CpuList& b);

// Into `parts` lists of nearly equal size. Every range is cut in the same way: where the second hyper-threads of cores form a
// range of their own ("0-31,64-95"), both threads of a core stay in one part. parts is at most count(list).
std::vector<CpuList> split(const CpuList& list, size_t parts);

}  // namespace phalanx::job
