// The grammar of NCCL's log lines, 2.10 to 2.30 (NCCL src/debug.cc, ncclDebugLog):
//
//   HOST:PID:TID [DEV] NCCL INFO MESSAGE
//   [TIME] HOST:PID:TID [DEV] FILE:LINE (FUNCTION) NCCL WARN MESSAGE     TIME since 2.26, FUNCTION since 2.30
//   NCCL version 2.18.1+cuda12.1                                          bare
//
// Whatever a launcher wrote in front of HOST is skipped; two records that were written into one line are told apart. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace phalanx::logs {

struct NcclRecord {
  enum class Level { kInfo, kWarn, kVersion };
  Level level = Level::kInfo;
  std::string_view host;  // empty: a bare version line
  int64_t pid = 0, tid = 0;
  int device = -1;         // CUDA's number, as the process sees it
  std::string_view place;  // of a warning: "misc/socket.cc:484"
  std::string_view message;
};

// The records of one line, without its end; views into it. None: the line is not NCCL's.
std::vector<NcclRecord> nccl_records(std::string_view line);

// Reads one message from left to right. Each call takes what it reads and says whether it was there.
class NcclScanner {
 public:
  explicit NcclScanner(std::string_view text) : rest_(text) {}
  bool literal(std::string_view text);
  std::optional<int64_t> number();   // decimal, with an optional minus; at most 18 digits
  std::string_view hex();            // "0x1f", "1f"; empty: none
  std::string_view word();           // up to a blank, blanks before it skipped; empty: the end
  std::string_view until(char end);  // up to `end`, which is taken too; empty and nothing taken if it does not come
  void blanks();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace phalanx::logs
