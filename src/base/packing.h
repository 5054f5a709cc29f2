// Blocks of contents, each packed by itself, for their way to hosts. Measured on Python packages and on shared libraries, one thread:
//
//   effort     format    packed to   packs               unpacks
//   kLeast     LZ4       37-49 %     340-710 MB/s        3 GB/s
//   kLittle    deflate   27-37 %     190-240 MB/s        0.7-1 GB/s
//   kMuch      deflate   25-34 %     80-100 MB/s         0.7-1 GB/s
//
// The agent has both formats in 70 kB; zstd would be quicker than deflate, and 220 kB. Contents that pack badly differ from this: weights
// in bf16 get no shorter with kMuch than with kLittle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct libdeflate_compressor;

namespace phalanx::base {

inline constexpr size_t kMostPackedBytes = 1 << 20;  // of what a block is made of

enum class Packing : uint8_t { kLz4 = 0, kDeflate = 1 };  // LZ4's block format; RFC 1951
enum class Effort : uint8_t { kLeast, kLittle, kMuch };
inline constexpr size_t kEfforts = 3;

class Packer {
 public:
  Packer();
  ~Packer();
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  // Appends the bytes, at most kMostPackedBytes, as one block. Without the memory for more effort: with less.
  Packing pack(std::string_view bytes, Effort effort, std::string& out);

 private:
  struct Free {
    void operator()(libdeflate_compressor* one) const;
  };
  std::unique_ptr<libdeflate_compressor, Free> deflate_[kEfforts];  // made when they are first asked for
};

// The `size` bytes of a block, in place of what was in `out`. False: the block is malformed or of another size, or there is no memory.
bool unpack(Packing packing, std::string_view block, size_t size, std::string& out);

}  // namespace phalanx::base
