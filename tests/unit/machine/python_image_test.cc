// Python stacks in memory that is put together here: of versions that are not installed, and broken on purpose.
#include "python_image.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "machine/python/frames.h"

using namespace phalanx;

namespace {

using namespace std::chrono_literals;
using Stack = std::vector<std::string>;  // "train.py:42 step", innermost first

using python_image::Image;

Stack told_by(Image& image) {
  base::Result<machine::PythonStacks> read = machine::read_python(image.interpreter(), image, {Image::kTid}, os::mono_now() + 2s);
  if (!read.ok()) return {"error: " + read.error().message};
  if (read->threads.size() != 1) return {fmt::format("{} threads", read->threads.size())};
  if (!read->threads[0].problem.empty()) return {"problem: " + read->threads[0].problem};
  Stack stack;
  for (const machine::PythonFrame& f : read->threads[0].frames) stack.push_back(fmt::format("{}:{} {}", f.file, f.line, f.function));
  return stack;
}

machine::PythonLayout layout_of_314(bool free_threaded) {
  python_image::Offsets314 offsets = python_image::offsets_of_314(free_threaded);
  char bytes[machine::kOffsetsBytes] = "";
  std::memcpy(bytes, &offsets, sizeof(offsets));
  return machine::python_layout_in({bytes, sizeof(bytes)}, 0x030e).value();
}

std::vector<machine::PythonLayout> layouts() {
  std::vector<machine::PythonLayout> all{layout_of_314(false), layout_of_314(true)};
  for (uint32_t version = machine::kFirstPython; version < machine::kSaysOffsets; ++version)
    all.push_back(*machine::python_layout(version));
  return all;
}

const Stack kStack{"/data/train.py:12 step", "/data/train.py:12 train"};

TEST(PythonImage, EveryLayoutGivesTheSameStack) {
  for (const machine::PythonLayout& layout : layouts()) {
    Image image(layout);
    EXPECT_EQ(told_by(image), kStack) << machine::python_version_text(layout.version) << (layout.free_threaded ? "t" : "");
  }
}

TEST(PythonImage, ACopyOfTheCodeOfAFreeThreadedBuild) {
  machine::PythonLayout layout = layout_of_314(true);
  Image image(layout);
  uint64_t copies = Image::kBase + Image::kSize - 64, copy = copies + 32;
  image.set(image.inner + layout.frame_copy, int32_t{2});
  image.set(image.inner + layout.frame_place, copy + 2);
  image.set(image.code + layout.code_copies, copies);
  image.set(copies, uint64_t{3});
  image.set(copies + 24, copy);
  EXPECT_EQ(told_by(image).at(0), "/data/train.py:11 step");
  image.set(copies, uint64_t{2});  // there is none of that number
  EXPECT_EQ(told_by(image).at(0), "problem: its stack changed while it was read");
}

TEST(PythonImage, OffsetsThatMakeNoSense) {
  python_image::Offsets314 good = python_image::offsets_of_314(false);
  auto layout = [](const python_image::Offsets314& offsets, uint32_t version, size_t size) {
    return machine::python_layout_in(std::string_view(reinterpret_cast<const char*>(&offsets), size), version).has_value();
  };
  EXPECT_TRUE(layout(good, 0x030e, sizeof(good)));
  EXPECT_FALSE(layout(good, 0x030d, sizeof(good)));  // the version of another
  EXPECT_FALSE(layout(good, 0x030e, sizeof(good) - 8));
  EXPECT_FALSE(layout(good, 0x030f, sizeof(good)));
  python_image::Offsets314 bad = good;
  bad.cookie[0] = 'y';
  EXPECT_FALSE(layout(bad, 0x030e, sizeof(bad)));
  bad = good;
  bad.threads_head = uint64_t{1} << 40;
  EXPECT_FALSE(layout(bad, 0x030e, sizeof(bad)));
  bad = good;
  bad.instr_ptr = 5000;
  EXPECT_FALSE(layout(bad, 0x030e, sizeof(bad)));
}

TEST(PythonImage, WhatIsBrokenIsNotTold) {
  const std::string changed = "problem: its stack changed while it was read";
  for (const machine::PythonLayout& layout : layouts()) {
    SCOPED_TRACE(machine::python_version_text(layout.version));
    Image loop(layout);
    loop.set(loop.outer + layout.frame_previous, loop.inner);
    EXPECT_EQ(told_by(loop), Stack{changed});
    Image wild(layout);
    wild.set(wild.outer + layout.frame_previous, uint64_t{0xdeadbeef000});
    EXPECT_EQ(told_by(wild), Stack{changed});
    Image other_type(layout);
    other_type.set(other_type.inner + layout.frame_code, other_type.name);
    EXPECT_EQ(told_by(other_type), Stack{changed});
    Image long_name(layout);
    long_name.set(long_name.name + layout.text_length, ~uint64_t{0});
    EXPECT_EQ(told_by(long_name), Stack{changed});
    Image long_table(layout);
    long_table.set(long_table.lines + layout.bytes_size, uint64_t{1} << 62);
    EXPECT_EQ(told_by(long_table), Stack{changed});
    Image far(layout);
    if (layout.version >= machine::kPointsIntoCode) far.set(far.inner + layout.frame_place, ~uint64_t{0});
    else far.set(far.inner + layout.frame_place, int32_t{-7});
    EXPECT_EQ(told_by(far), Stack{changed});
    Image returned(layout);
    if (layout.version < machine::kPlacesAreInstructions) returned.set(returned.outer + layout.frame_state, uint8_t{0});
    else returned.set(returned.outer + layout.frame_state, uint8_t{layout.version < machine::kPointsIntoCode ? uint8_t{4} : uint8_t{1}});
    EXPECT_EQ(told_by(returned), Stack{changed});
    Image ring(layout);  // of threads
    ring.set(ring.thread + layout.thread_next, ring.thread);
    EXPECT_EQ(told_by(ring), Stack{"256 threads"});
    Image unborn(layout);
    unborn.set(Image::kBase + layout.interpreters_head, uint64_t{0});
    EXPECT_EQ(told_by(unborn), Stack{"error: the interpreter has not started yet, or has ended"});
    Image cut(layout);
    cut.bytes().resize(64);
    EXPECT_TRUE(told_by(cut).at(0).starts_with("error: "));
  }
}

TEST(LineTable, EveryFormAndItsEnd) {
  using machine::line_at;
  using machine::LineTable;
  using namespace std::string_literals;
  // 300 lines further in an lnotab: 127 at most at a time.
  EXPECT_EQ(line_at(LineTable::kLnotab, "\x04\x7f\x00\x7f\x00\x2e\x06\xff"s, 1, 5), 301);
  EXPECT_EQ(line_at(LineTable::kLnotab, "\x04\x7f\x00\x7f\x00\x2e\x06\xff"s, 1, 12), 300);
  EXPECT_EQ(line_at(LineTable::kLnotab, "\x04"s, 7, 100), 7);
  // A range without a line.
  EXPECT_EQ(line_at(LineTable::kRanges, "\x02\x01\x02\x80\x02\x01"s, 1, 2), std::nullopt);
  EXPECT_EQ(line_at(LineTable::kRanges, "\x02\x01\x02\x80\x02\x01"s, 1, 4), 3);
  EXPECT_EQ(line_at(LineTable::kRanges, "\x02\x01"s, 1, 2), std::nullopt);
  // Long (14): 100 lines further, then back by 3; 15: none.
  EXPECT_EQ(line_at(LineTable::kLocations, "\xf0\x48\x03\x00\x00\x00"s, 1, 0), 101);
  EXPECT_EQ(line_at(LineTable::kLocations, "\xf0\x48\x03\x00\x00\x00\xe9\x07\xf8"s, 1, 2), 98);
  EXPECT_EQ(line_at(LineTable::kLocations, "\xf0\x48\x03\x00\x00\x00\xe9\x07\xf8"s, 1, 6), std::nullopt);
  EXPECT_EQ(line_at(LineTable::kLocations, "\x01"s, 1, 0), std::nullopt);
  EXPECT_EQ(line_at(LineTable::kLocations, "\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"s, 1, 0), std::nullopt);  // no such line
  for (LineTable kind : {LineTable::kLnotab, LineTable::kRanges, LineTable::kLocations}) {
    EXPECT_EQ(line_at(kind, "", 9, -1), 9);
    EXPECT_EQ(line_at(kind, "", -9, -1), std::nullopt);
  }
}

}  // namespace
