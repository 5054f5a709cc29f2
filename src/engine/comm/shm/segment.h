// Memory that ranks of one host share: a file in memory without a name (memfd), whose descriptor goes from rank to rank. It is gone with
// the last process that has it, however that ends, and does not count against the size of /dev/shm (64 MiB in most containers), only as
// memory.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::engine::comm {

// A mapping, undone with its last owner.
class Mapping {
 public:
  Mapping(char* data, size_t size) : data_(data), size_(size) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_;
  size_t size_;
};

// A new segment of zeros. Its size is sealed: nobody can shorten it under the others.
base::Result<os::Fd> make_segment(size_t bytes);
// Takes real memory for a part of it now, so that no later write can fail; by the rank that will use it, so that it lies near its cores.
// Error: there is no room (kUnfit).
base::Status reserve(const os::Fd& segment, size_t begin, size_t bytes);
// Maps all of a segment that another rank made. Error (kInternal): it is not sealed, or not of this size.
base::Result<std::shared_ptr<Mapping>> map_segment(const os::Fd& segment, size_t bytes);
// The same file opened once more, with locks of its own.
base::Result<os::Fd> open_again(const os::Fd& segment);

}  // namespace phalanx::engine::comm
