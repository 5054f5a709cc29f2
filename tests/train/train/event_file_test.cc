// TensorBoard's files, read by another program (Python's struct) from their definition alone.
#include "engine/train/report/event_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "engine/train/report/tensorboard.h"
#include "os/files.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::train;
namespace fs = std::filesystem;

// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(EventFile, Crc32cOfKnownValues) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// The first record of every file that TensorFlow itself writes has this length and this checksum of it.
TEST(EventFile, ARecordIsFramed) {
  const std::string data = encode_file_version(1e9);
  ASSERT_EQ(data.size(), 24u);
  const std::string record = encode_record(data);
  ASSERT_EQ(record.size(), 24u + 16);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(8, 4), "\xa3\x7f\x4b\x22");
  EXPECT_EQ(data.substr(9),
            "\x1a\x0d"
            "brain.Event:2");
}

constexpr const char* kReader = R"py(
import struct, sys
table = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
    table.append(n)
def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]; at += 1
        value |= (byte & 127) << shift; shift += 7
        if byte < 128:
            return value, at
def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0: value, at = varint(data, at)
        elif kind == 1: value = struct.unpack_from("<d", data, at)[0]; at += 8
        elif kind == 5: value = struct.unpack_from("<f", data, at)[0]; at += 4
        else:
            size, at = varint(data, at); value = data[at:at + size]; at += size
            assert len(value) == size
        yield key >> 3, value
data = open(sys.argv[1], "rb").read()
at = 0
while at < len(data):
    size, check = struct.unpack_from("<QI", data, at)
    assert check == masked(data[at:at + 8])
    body = data[at + 12:at + 12 + size]
    assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body)
    at += 16 + size
    event = dict(fields(body))
    step = event.get(2, 0)
    assert event[1] > 1.6e9
    if 3 in event: print("version", event[3].decode())
    if 7 in event: print(step, "session", dict(fields(event[7]))[1])
    for number, value in fields(event.get(5, b"")):
        scalar = dict(fields(value))
        print(step, scalar[1].decode(), "%g" % scalar[2])
)py";

std::string read_by_python(const ranks::TempFolder& folder, const std::string& file) {
  const std::string reader = folder / "reader.py";
  EXPECT_TRUE(os::write_file_atomic(reader, kReader).ok());
  FILE* pipe = popen(fmt::format("/usr/bin/python3 '{}' '{}' 2>&1", reader, file).c_str(), "r");
  std::string said;
  std::array<char, 4096> buffer{};
  while (size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) said.append(buffer.data(), got);
  pclose(pipe);
  return said;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(EventFile, PythonReadsWhatWasWritten) {
  ranks::TempFolder folder;
  {
    auto board = TensorBoard::open(folder / "tb", 0);
    ASSERT_TRUE(board.ok()) << board.error().render();
    const std::vector<Scalar> first = {{"train/loss", 2.5}, {"train/lr", 0.001}}, second = {{"val/loss", -0.25}};
    ASSERT_TRUE(board->write(10, first).ok());
    ASSERT_TRUE(board->write(int64_t{1} << 40, second).ok());
    const std::string long_tag(300, 'x');
    const std::vector<Scalar> strange = {{"nan", std::nan("")}, {"", std::numeric_limits<double>::infinity()}, {long_tag, 0}};
    ASSERT_TRUE(board->write(11, strange).ok());
  }
  auto files = files_in(folder / "tb");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(fs::path(files[0]).filename().string().rfind("events.out.tfevents.", 0), 0u);
  EXPECT_EQ(read_by_python(folder, files[0]),
            "version brain.Event:2\n10 train/loss 2.5\n10 train/lr 0.001\n1099511627776 val/loss -0.25\n11 nan nan\n11  inf\n11 " +
                std::string(300, 'x') + " 0\n");
}

TEST(EventFile, AResumedRunWritesAFileOfItsOwn) {
  ranks::TempFolder folder;
  const Scalar loss{"train/loss", 1};
  ASSERT_TRUE(TensorBoard::open(folder / "tb", 0)->write(1, {&loss, 1}).ok());
  ASSERT_TRUE(TensorBoard::open(folder / "tb", 7)->write(8, {&loss, 1}).ok());
  auto files = files_in(folder / "tb");
  ASSERT_EQ(files.size(), 2u) << "even in the same second";
  EXPECT_EQ(read_by_python(folder, files[0]), "version brain.Event:2\n1 train/loss 1\n");
  EXPECT_EQ(read_by_python(folder, files[1]), "version brain.Event:2\n8 session 1\n8 train/loss 1\n");
}

TEST(EventFile, AFolderThatCannotBeMadeIsAnError) {
  ranks::TempFolder folder;
  ASSERT_TRUE(os::write_file_atomic(folder / "file", "").ok());
  EXPECT_FALSE(TensorBoard::open(folder / "file/tb", 0).ok());
}

}  // namespace
