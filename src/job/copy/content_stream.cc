#include "job/copy/content_stream.h"

#include <algorithm>

#include "wire/copy_messages.h"

namespace phalanx::job {
namespace {

constexpr size_t kBlock = 256 << 10;  // at least so much of contents, where there is more
constexpr size_t kMostBlock = 2 * kBlock;
static_assert(kMostBlock <= base::kMostPackedBytes);
constexpr size_t kMostKept = 64;
constexpr size_t kWorthIt = 16;  // a block is compressed where that saves one part in so many

}  // namespace

ContentStream::ContentStream(std::string root, const sync::Manifest& manifest, const sync::Aside* aside, Packers& packers,
                             Wanted wanted, Place place)
    : manifest_(manifest),
      packers_(packers),
      wanted_(std::move(wanted)),
      content_(std::move(root), aside),
      place_(place),
      read_(std::make_unique_for_overwrite<char[]>(kMostBlock)) {}

// Appends the frame of some contents.
void ContentStream::put_contents(std::string& frames, std::string_view bytes) {
  std::string& packed = packers_.packed;
  packed.clear();
  const base::Packing packing = packers_.packer.pack(bytes, packers_.effort.now(), packed);
  if (packed.size() + bytes.size() / kWorthIt < bytes.size())
    (void)wire::encode(frames, wire::CopyPacked{packing, static_cast<uint32_t>(bytes.size()), packed});
  else (void)wire::encode(frames, wire::CopyBytes{bytes});
}

// Whole files as long as there are any, so that the host has each in one piece.
bool ContentStream::make_block() {
  const os::Mono begin = os::mono_now();
  Block block;
  size_t size = 0;
  while (size < kBlock && place_.next < wanted_.entries.size()) {
    const uint32_t entry = wanted_.entries[place_.next];
    if (!begun_) {
      if (place_.from == 0) ++block.files;
      if (place_.from == 0 && entry == wanted_.partial) place_.from = wanted_.from;
      content_.begin(manifest_.entries[entry], place_.from);
      begun_ = true;
    }
    if (content_.more()) {
      const std::string_view piece = content_.next({read_.get() + size, kBlock});
      size += piece.size();
      place_.from += piece.size();
    } else {
      place_ = {place_.next + 1, 0};
      begun_ = false;
    }
  }
  if (size == 0 && block.files == 0) return false;
  if (size > 0) {
    put_contents(block.frames, {read_.get(), size});
    packers_.effort.made(size, begin, os::mono_now());
  }
  block.bytes = size;
  block.after = place_;
  blocks_.push_back(std::move(block));
  if (blocks_.size() > kMostKept) forget_before(first_ + 1);
  return true;
}

const ContentStream::Block* ContentStream::block(size_t number) {
  while (number >= first_ + blocks_.size())
    if (!make_block()) return nullptr;
  return &blocks_[number - first_];
}

void ContentStream::forget_before(size_t number) {
  const size_t going = std::min(number - std::min(number, first_), blocks_.size());
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<ptrdiff_t>(going));
  first_ += going;
}

}  // namespace phalanx::job
