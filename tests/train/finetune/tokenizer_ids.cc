// The tokenizer for tests in another language: tokenizer_ids TOKENIZER.json ids|speed.
// ids: standard input has strings, each as a number of bytes (32 bits) and these; for each one the number of ids, the ids, the number of
// bytes of decode(ids), and these. speed: prints MB of standard input that a second of processor time encodes, a paragraph at a time.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "os/files.h"
#include "tune/tokenizer/tokenizer.h"

using namespace phalanx;

namespace {

template <typename T>
void put(const T* values, size_t count) {
  std::fwrite(values, sizeof(T), count, stdout);
}

int ids(const tune::Tokenizer& tokenizer) {
  uint32_t length = 0;
  std::string text;
  while (std::fread(&length, sizeof length, 1, stdin) == 1) {
    text.resize(length);
    if (std::fread(text.data(), 1, length, stdin) != length) return 1;
    const std::vector<int32_t> found = tokenizer.encode(text);
    const std::string back = tokenizer.decode(found);
    const auto count = static_cast<uint32_t>(found.size()), bytes = static_cast<uint32_t>(back.size());
    put(&count, 1);
    put(found.data(), found.size());
    put(&bytes, 1);
    put(back.data(), back.size());
  }
  return 0;
}

int speed(const tune::Tokenizer& tokenizer) {
  std::string text;
  char part[65536];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, stdin)) > 0;) text.append(part, n);
  const std::clock_t start = std::clock();  // of processor time: others may use the core too
  size_t count = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find("\n\n", at), text.size() - 2) + 2;
    count += tokenizer.encode(std::string_view(text).substr(at, end - at)).size();
    at = end;
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%.1f MB in %zu tokens: %.1f MB/s\n", static_cast<double>(text.size()) / 1e6, count,
              static_cast<double>(text.size()) / 1e6 / seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto json = os::read_file(argv[1], tune::kMaxTokenizerBytes);
  if (!json.ok()) return 2;
  const auto tokenizer = tune::Tokenizer::parse(*json);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s: %s\n", tokenizer.error().message.c_str(), tokenizer.error().cause.c_str());
    return 2;
  }
  return std::string_view(argv[2]) == "speed" ? speed(*tokenizer) : ids(*tokenizer);
}
