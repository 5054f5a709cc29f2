// SHA-256 (FIPS 180-4), so that `sha256sum` can check a checkpoint without us.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace engine::checkpoint {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  void block(const unsigned char* data);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace engine::checkpoint
