#include "hosts/connect/payload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/sha256.h"
#include "base/try.h"
#include "hosts/connect/private_folder.h"
#include "os/apart.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kMaxBinaryBytes = 256 << 20;
constexpr size_t kTurnBytes = 128 << 10;  // 2 ms of work: a frame that comes meanwhile does not wait longer
constexpr size_t kHashBytes = 64;
constexpr std::chrono::milliseconds kPatience{500};  // for the disk that the packed program is kept on; after that we go on without it

std::string header(const std::string& hash, size_t size, std::string_view encoding, size_t length) {
  return fmt::format("{} {} {} {}\n", hash, size, encoding, length);
}

}  // namespace

std::string kept_payload(const std::string& build) {
  if (build.find_first_not_of("0123456789abcdef") != std::string::npos || build.empty()) return "";
  std::string home = os::environment_value("HOME"), cache = os::environment_value("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  if (cache.empty() || cache[0] != '/') return "";
  std::string folder = cache + "/phalanx";
  if (!private_folder(folder) || !private_folder(folder + "/" + build)) return "";
  return folder + "/" + build + "/packed";
}

// The program on its way into the compressed form.
struct Payload::Packing {
  os::Loop& loop;
  os::Fd file;
  base::GzipStream stream{base::GzipStream::Level::kFast};
  base::Sha256 hash{};
  size_t size = 0;
  std::string bytes{};
  os::TimerId timer = 0;
};

Payload::Payload(std::string program, std::string kept) : program_(std::move(program)), kept_(std::move(kept)) {}

Payload::~Payload() {
  if (packing_ && packing_->timer) packing_->loop.cancel(packing_->timer);
}

void Payload::expect(os::Loop& loop) {
  if (kept_.empty() || packing_ || !packed_.empty() || os::exists(kept_)) return;
  pack(loop);
}

std::shared_ptr<Payload::Ready> Payload::request(os::Loop& loop, Encoding encoding, Ready ready) {
  if (encoding == Encoding::kGzip && packed_.empty() && !packing_) load_kept();
  if (encoding == Encoding::kRaw || !packed_.empty()) {
    ready(encoding == Encoding::kRaw ? raw() : base::Result<std::string_view>(packed_));
    return nullptr;
  }
  auto waiting = std::make_shared<Ready>(std::move(ready));
  waiting_.push_back(waiting);
  if (!packing_) pack(loop);
  return waiting;
}

base::Result<std::string_view> Payload::raw() {
  if (raw_.empty()) {
    TRY_ASSIGN(std::string binary, os::read_file(program_, kMaxBinaryBytes));
    raw_ = header(base::sha256_hex(binary), binary.size(), "raw", binary.size()) + binary;
  }
  return std::string_view(raw_);
}

void Payload::pack(os::Loop& loop) {
  packing_.reset(new Packing{.loop = loop, .file = os::Fd(::open(program_.c_str(), O_RDONLY | O_CLOEXEC))});
  packing_->timer = loop.after(os::nanoseconds(0), [this] { turn(); });
}

void Payload::turn() {
  Packing& p = *packing_;
  static thread_local const auto buffer = std::make_unique_for_overwrite<char[]>(kTurnBytes);
  ssize_t n = p.file.valid() ? ::read(p.file.get(), buffer.get(), kTurnBytes) : -1;
  if (n < 0 && errno != EINTR) return finish(base::system_error("read", program_));
  if (n >= 0) {
    std::string_view text(buffer.get(), static_cast<size_t>(n));
    p.hash.update(text);
    p.size += text.size();
    base::Status fed = p.stream.feed(text, n == 0, p.bytes);
    if (!fed.ok()) return finish(fed.error());
    if (n == 0) return finish(header(p.hash.hex(), p.size, "gzip", p.bytes.size()) + p.bytes);
  }
  // The loop looks at its descriptors before it comes back here.
  p.timer = p.loop.after(os::nanoseconds(0), [this] { turn(); });
}

void Payload::finish(base::Result<std::string> packed) {
  packing_.reset();
  if (packed.ok()) {
    packed_ = std::move(packed).value();
    // A file that was cut short by a crash fails its hash below, so nothing has to wait for the disk here. If it cannot be written,
    // the next launch compresses again.
    if (!kept_.empty())
      (void)os::run_apart(
          "phalanx-copy", [this] { (void)os::write_file_atomic(kept_, base::sha256_hex(packed_) + packed_, 0600, os::Durable::kNo); },
          kPatience);
  }
  for (const std::weak_ptr<Ready>& weak : std::exchange(waiting_, {}))
    if (auto ready = weak.lock()) (*ready)(packed_.empty() ? base::Result<std::string_view>(packed.error()) : std::string_view(packed_));
}

void Payload::load_kept() {
  if (kept_.empty()) return;
  base::Result<std::string> file = os::read_file(kept_, kMaxBinaryBytes);
  if (!file.ok() || file->size() <= kHashBytes) return;
  std::string_view message = std::string_view(*file).substr(kHashBytes);
  if (base::sha256_hex(message) == std::string_view(*file).substr(0, kHashBytes)) packed_ = message;
}

}  // namespace phalanx::hosts
