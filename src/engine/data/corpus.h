// A text file, memory-mapped: it may be far larger than memory, and the ranks of one host share its pages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace engine::data {

class Corpus {
 public:
  // A missing, unreadable or empty file is an error (kConfig). The file must not shrink while it is mapped.
  static base::Result<Corpus> open(const std::string& path);
  Corpus(Corpus&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  Corpus& operator=(Corpus&& other) noexcept {
    std::swap(text_, other.text_);
    return *this;
  }
  ~Corpus();

  std::string_view text() const { return text_; }
  // Of the length and of pages spread evenly over the file: cheap on any size, and different for a different text.
  uint64_t fingerprint() const;

 private:
  explicit Corpus(std::string_view mapped) : text_(mapped) {}
  std::string_view text_;
};

}  // namespace engine::data
