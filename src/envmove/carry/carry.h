// An environment on its way to another place, as it will be there: every file with its mode, its time and its content at the new place.
// Most contents are those of files here; what names the place is rewritten now, by the same rules as rehome.h, and lies aside. So what
// arrives is right from its first moment, is hashed like everything else, and is the same again at the next push.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "envmove/rehome.h"
#include "sync/aside.h"
#include "sync/manifest.h"
#include "sync/scan.h"

namespace phalanx::envmove {

// A package whose code lay outside and comes along: it is then below the environment, in src/<name>.
struct Bundled {
  std::string source;  // absolute
  std::string place;   // below the root
  size_t files = 0;
  uint64_t bytes = 0;
};

// Why the Python that a venv was made from does not come along.
enum class BaseStays {
  kNo,      // it does, or it lies in the environment, or this is no venv
  kSystem,  // it is the system's: the other machine has to have it at the same path
  kConda,   // it belongs to a conda environment
  kLinked,  // it finds its library by an absolute path
  kLarge,
  kUnread,   // a file of it cannot be read
  kUnknown,  // it is not laid out as CPython's are, or there is a .python here already
};

struct Carried {
  sync::Manifest manifest;
  uint32_t mode = 0;     // of the environment's folder
  size_t rewritten = 0;  // files and links
  std::vector<Bundled> bundled;
  std::optional<Bundled> base;  // the Python that a venv was made from, which comes along
  BaseStays base_stays = BaseStays::kNo;
  std::vector<Editable> left_behind;   // their code is missing here
  std::vector<std::string> untouched;  // opaque files that hold an old prefix
};

struct CarryRequest {
  std::string to;     // absolute, without a final slash
  std::string cache;  // a folder for what was found out about files: hashes, and which of them name no place. Empty: none
};
struct CarryProgress {
  std::function<void(uint64_t bytes)> hashed;  // so many more were read
  Progress files;                              // from several threads
};

// aside: an empty file; gets the contents. Reads everything that is not in the cache, and changes nothing. Error kConfig: a file cannot be
// moved there, an interrupted repair, or an editable install that is too large; kUsage: a file cannot be read.
base::Result<Carried> carry(const Environment& environment, const CarryRequest& request, sync::Aside& aside, const CarryProgress& progress);

// Appends contents to `aside`; from any thread.
class AsideWriter {
 public:
  explicit AsideWriter(sync::Aside& aside) : aside_(aside) {}
  // Its SHA-256, 32 bytes. A content that is there already is not written again.
  base::Result<std::string> put(std::string_view content);

 private:
  sync::Aside& aside_;
  std::mutex mutex_;
  uint64_t size_ = 0;
};

// The trees of editable installs outside the environment, as entries for its list, in no order: src/<name> and what is in it, without .git,
// caches, and the environment itself. Their contents go aside. moves: what leads to each of them, and where that is then.
struct Bundle {
  std::vector<Bundled> bundled;
  std::optional<Bundled> base;
  BaseStays base_stays = BaseStays::kNo;
  std::vector<Editable> left_behind;
  std::vector<Move> moves;
  std::vector<Move> base_moves;  // of what pyvenv.cfg and links lead to
  std::vector<sync::Entry> entries;
};
base::Result<Bundle> bundle_editables(const Environment& environment, const std::vector<std::string>& own_places,
                                      const CarryRequest& request, AsideWriter& aside);

// Adds the Python that a venv was made from, as .python, if it runs wherever it lies (those of uv do): without its own packages,
// unless the venv uses them, and with its paths rewritten.
base::Status bundle_base(const Environment& environment, const std::vector<std::string>& own_places, const CarryRequest& request,
                         AsideWriter& aside, Bundle& out);

// What has been scanned, below a place of the environment: its contents go aside. change (may be null): of each content.
using ChangeContent = std::function<std::string(const std::string& path, std::string content)>;
ChangeContent moved_texts(Move move);  // texts are rewritten; programs, and what cannot be rewritten, stay
base::Status put_aside(const std::string& source, const std::string& place, sync::Scan scan, const ChangeContent& change,
                       AsideWriter& aside, std::vector<sync::Entry>& entries);

}  // namespace phalanx::envmove
