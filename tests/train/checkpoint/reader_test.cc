// Checkpoints of all ranks: cut by W ranks and read by W', and every kind of damage named.
#include "engine/checkpoint/reader.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "base/sha256.h"
#include "engine/checkpoint/safetensors.h"
#include "os/files.h"
#include "pieces.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;
namespace fs = std::filesystem;

std::string content(const std::string& path) { return os::read_file(path, 1 << 24).value(); }
void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary | std::ios::trunc) << text; }

// Everything there is to say about a checkpoint: how it opens, and how all of it verifies.
std::string verdict(const std::string& path) {
  auto reader = Reader::open(path);
  if (!reader.ok()) return reader.error().render();
  auto verified = reader->verify(2);
  return verified.ok() ? "good" : verified.error().render();
}

// Makes the manifest and DONE fit what now stands in the folder, as somebody who lies would.
void vouch(const std::string& path, int world, std::string (*change)(std::string) = [](std::string text) { return text; }) {
  auto manifest = parse_manifest(content(path + "/manifest.json")).value();
  manifest.files.clear();
  for (int rank = 0; rank < world; ++rank)
    for (const std::string& name : {shard_file(rank, world), record_file(rank, world)}) {
      const std::string bytes = content(path + "/" + name);
      manifest.files.push_back({name, {bytes.size(), base::sha256_hex(bytes)}});
    }
  const std::string text = change(to_text(manifest));
  put(path + "/manifest.json", text);
  put(path + "/DONE", base::sha256_hex(text));
}

// The same for the record of one rank and its shard.
void change_record(const std::string& path, int rank, int world, const std::function<void(ShardRecord&)>& change) {
  auto record = parse_shard_record(content(path + "/" + record_file(rank, world))).value();
  const std::string shard = content(path + "/" + shard_file(rank, world));
  record.shard = {shard.size(), base::sha256_hex(shard)};
  change(record);
  put(path + "/" + record_file(rank, world), to_text(record));
}

TEST(Reader, AnyNumberOfRanksReadsWhatAnyOtherWrote) {
  for (int world = 1; world <= 4; ++world)
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      pieces::Folder folder;
      auto reader = Reader::open(pieces::save(folder.path(), 20, world, seed));
      ASSERT_TRUE(reader.ok()) << reader.error().render();
      EXPECT_EQ(reader->world(), world);
      EXPECT_EQ(base::get_int(reader->rank_state(world - 1), "place"), (world - 1) * 10);
      EXPECT_EQ(base::get_string(reader->common_state(), "config"), "c");
      for (int readers = 1; readers <= 4; ++readers) pieces::expect_state(*reader, 20, readers, seed + 100);
    }
}

TEST(Reader, ConvertsAndFillsAnyShape) {
  pieces::Folder folder;
  auto reader = Reader::open(pieces::save(folder.path(), 3, 3));
  ASSERT_TRUE(reader.ok());
  at::Tensor out = at::zeros({11, 7}, at::kDouble);
  ASSERT_TRUE(reader->read("model.embed.weight", 0, 77, out.t()).ok());
  EXPECT_TRUE(out.t().to(at::kFloat).equal(pieces::state(3)["model.embed.weight"]));
  EXPECT_NE(reader->read("model.absent", 0, 0, at::empty({0})).error().render().find("no tensor \"model.absent\""), std::string::npos);
  EXPECT_NE(reader->read("model.flag", 5, 10, at::empty({5})).error().render().find("has 9 elements"), std::string::npos);
}

// What the first releases wrote: one rank's tensors, with names of its own for the files.
TEST(Reader, AnOlderVersionIsRefusedByItsNumber) {
  pieces::Folder folder;
  const std::string old = folder / "step-00000007";
  fs::create_directory(old);
  const std::string manifest = R"({"magic":"phalanx-checkpoint","version":1,"step":7,"about":{},"files":[]})";
  put(old + "/manifest.json", manifest);
  put(old + "/DONE", base::sha256_hex(manifest));
  EXPECT_EQ(verdict(old), fmt::format("error: cannot use the checkpoint \"{}\"\n  because its version is 1; this program reads version "
                                      "2\n\nhint: use it with the program that wrote it, or start a new run in another folder\n",
                                      old));
  Readable found = pieces::value(newest_readable(folder.path()));
  EXPECT_EQ(found.reader, nullptr);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].path, old);
}

TEST(Reader, AnyNameAndTypeComesBack) {
  pieces::Folder folder;
  const SaveId id{folder.path(), 3, "t", 1, 1};
  const Interrupt interrupt;
  const std::vector<Piece> saved{{"model.double", {2, 3}, 0, at::arange(6, at::kDouble)},
                                 {"model.scalar", {}, 0, at::arange(7, 8, at::kInt)},
                                 {"model.half", {3}, 0, at::arange(3, at::kHalf)},
                                 {"model.empty", {0, 3}, 0, at::empty({0}, at::kShort)},
                                 {"model.name \"with\" quotes ü", {5}, 0, at::arange(5, at::kByte)}};
  ASSERT_TRUE(write_shard(id, 0, {.pieces = saved}, interrupt).ok());
  ASSERT_TRUE(claim(folder.path(), id.token).ok());
  const std::string path = finish(id, {}, interrupt).value().path;
  EXPECT_EQ(parse_safetensors(content(path + "/" + shard_file(0, 1)))->data_start % 8, 0u);
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().render();
  ASSERT_EQ(reader->tensors().size(), saved.size());
  for (const Piece& piece : saved) {
    at::Tensor back = at::empty_like(piece.data);
    ASSERT_TRUE(reader->read(piece.name, 0, back.numel(), back).ok()) << piece.name;
    EXPECT_TRUE(back.equal(piece.data)) << piece.name;
    EXPECT_EQ(reader->tensors().find(piece.name)->second.shape, piece.shape) << piece.name;
  }
}

// Whatever single byte of whatever file changes, something names the file or the manifest.
TEST(Reader, EveryChangedByteIsFound) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 2);
  ASSERT_EQ(verdict(path), "good");
  for (const char* name : {"DONE", "manifest.json", "shard-00000-of-00002.safetensors", "shard-00001-of-00002.json"}) {
    const std::string good = content(path + "/" + name);
    for (size_t at = 0; at < good.size(); at += 1 + good.size() / 150) {
      if (good[at] == '\n' && std::string_view(name) == "DONE") continue;
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 7)));
      put(path + "/" + name, damaged);
      const std::string said = verdict(path);
      EXPECT_NE(said, "good") << name << " byte " << at;
      EXPECT_TRUE(said.find(name) != std::string::npos || said.find("DONE mark") != std::string::npos) << name << ": " << said;
    }
    put(path + "/" + name, good);
  }
  EXPECT_EQ(verdict(path), "good");
}

TEST(Reader, TruncatedAndMissingFilesAreNamed) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 3), shard = path + "/shard-00001-of-00003.safetensors";
  for (uint64_t size : {0, 5, 100}) {
    fs::resize_file(shard, size);
    EXPECT_NE(verdict(path).find(fmt::format("it has {} bytes; the manifest says", size)), std::string::npos) << verdict(path);
  }
  fs::remove(shard);
  EXPECT_NE(verdict(path).find("it is missing"), std::string::npos) << verdict(path);
  fs::create_directory(shard);
  EXPECT_NE(verdict(path).find("not a regular file"), std::string::npos) << verdict(path);
  fs::remove(path + "/DONE");
  EXPECT_NE(verdict(path).find("never completed"), std::string::npos) << verdict(path);
  EXPECT_NE(verdict(folder / "step-00000009").find("no such folder"), std::string::npos);
}

TEST(Reader, SwappedShardsAreFound) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 2);
  fs::rename(path + "/shard-00000-of-00002.safetensors", path + "/x");
  fs::rename(path + "/shard-00001-of-00002.safetensors", path + "/shard-00000-of-00002.safetensors");
  fs::rename(path + "/x", path + "/shard-00001-of-00002.safetensors");
  EXPECT_NE(verdict(path).find("shard-00000-of-00002.safetensors\" is damaged"), std::string::npos) << verdict(path);
  vouch(path, 2);
  EXPECT_NE(verdict(path).find("its shard differs from the one in the manifest"), std::string::npos) << verdict(path);
  for (int rank : {0, 1}) change_record(path, rank, 2, [](ShardRecord&) {});
  vouch(path, 2);
  EXPECT_NE(verdict(path).find("it has no entry"), std::string::npos) << verdict(path);
}

// A piece that neither starts its tensor nor is empty.
PieceRecord& some(ShardRecord& record) {
  for (PieceRecord& piece : record.pieces)
    if (piece.begin > 0 && piece.count > 0) return piece;
  throw std::runtime_error("no such piece");
}

TEST(Reader, WhatLiesIsFound) {
  struct Lie {
    std::function<void(ShardRecord&)> change;
    const char* found;
  };
  const Lie lies[] = {
      {[](ShardRecord& r) { r.step = 6; }, "belongs to another rank or another save"},
      {[](ShardRecord& r) { r.save = "x"; }, "belongs to another rank or another save"},
      {[](ShardRecord& r) { r.rank = 0; }, "belongs to another rank or another save"},
      {[](ShardRecord& r) { r.pieces.pop_back(); }, "its record names"},
      {[](ShardRecord& r) { r.pieces.push_back(r.pieces[0]); }, "its record names"},
      {[](ShardRecord& r) { some(r).begin -= 1; }, "no entry"},
      {[](ShardRecord& r) { some(r).begin += 1000; }, "begin is missing or not a whole number"},
      {[](ShardRecord& r) { some(r).count -= 1; }, "not the"},
      {[](ShardRecord& r) { some(r).tensor.dtype = "F64"; }, "not the"},
      {[](ShardRecord& r) { some(r).tensor.shape.push_back(2); }, "on an earlier rank"},
      {[](ShardRecord& r) { r.pieces[0].tensor.shape = {int64_t{1} << 40, int64_t{1} << 40}; }, "too large"},
      {[](ShardRecord& r) { r.shard.bytes += 1; }, "its shard differs from the one in the manifest"},
  };
  for (const Lie& lie : lies) {
    pieces::Folder folder;
    const std::string path = pieces::save(folder.path(), 5, 2, 3);
    change_record(path, 1, 2, lie.change);
    vouch(path, 2);
    EXPECT_NE(verdict(path).find(lie.found), std::string::npos) << lie.found << ": " << verdict(path);
  }
}

TEST(Reader, NoFileNameLeadsOutOfTheFolder) {
  const std::pair<std::string (*)(std::string), const char*> cases[] = {
      {[](std::string t) { return t.replace(t.find("shard-00000"), 5, "../sh"); }, "instead of shard-00000-of-00002.safetensors"},
      {[](std::string t) { return t.replace(t.find("shard-00001"), 5, "/etc/"); }, "instead of shard-00001-of-00002.safetensors"},
      {[](std::string t) { return t.replace(t.find("\"world\": 2"), 10, "\"world\": 3"); }, "names 4 files; 3 ranks write 6"},
      {[](std::string t) { return t.replace(t.find("\"version\": 2"), 12, "\"version\": 3"); },
       "its version is 3; this program reads version 2"},
      {[](std::string t) { return t.replace(t.find("phalanx-check"), 13, "phalanx-check "); }, "not a phalanx-checkpoint file"},
      {[](std::string t) { return t.replace(t.find("\"F32\""), 5, "\"F64\""); }, "the shape or dtype of tensor"},
      {[](std::string) { return std::string(100'000, '['); }, "JSON"},
  };
  for (const auto& [change, expected] : cases) {
    pieces::Folder folder;
    const std::string path = pieces::save(folder.path(), 5, 2);
    vouch(path, 2, change);
    EXPECT_NE(verdict(path).find(expected), std::string::npos) << verdict(path);
  }
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 2), shard = path + "/" + shard_file(1, 2);
  fs::rename(shard, folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", shard);
  EXPECT_NE(verdict(path).find("a symbolic link"), std::string::npos) << verdict(path);
}

TEST(Reader, TheNewestReadableIsFoundAndTheOthersNamed) {
  pieces::Folder folder;
  EXPECT_EQ(pieces::value(newest_readable(folder.path())).reader, nullptr);
  for (int64_t step : {1, 2, 3, 4}) pieces::save(folder.path(), step, 2);
  std::string bytes = content(folder / "step-00000004/shard-00001-of-00002.safetensors");
  bytes.back() ^= 1;
  put(folder / "step-00000004/shard-00001-of-00002.safetensors", bytes);
  fs::remove(folder / "step-00000003/shard-00000-of-00002.json");
  Readable found = pieces::value(newest_readable(folder.path(), 2));
  ASSERT_NE(found.reader, nullptr);
  EXPECT_EQ(found.reader->step(), 2);
  ASSERT_EQ(found.skipped.size(), 2u);
  EXPECT_NE(found.skipped[0].error.render().find("step-00000004/shard-00001-of-00002.safetensors"), std::string::npos);
  EXPECT_NE(found.skipped[1].error.render().find("step-00000003/shard-00000-of-00002.json"), std::string::npos);
}

TEST(Reader, RanksShareTheHashing) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 4);
  std::string bytes = content(path + "/" + shard_file(2, 4));
  bytes.back() ^= 1;
  put(path + "/" + shard_file(2, 4), bytes);
  for (int rank = 0; rank < 3; ++rank) {
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->verify(1, rank, 3).ok(), rank != 2) << "files 0 and 3, 1, 2";
  }
}

// A piece that is opened stays readable while another process removes the checkpoint.
TEST(Reader, OutlivesItsFiles) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 2);
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(remove_checkpoint(path).ok());
  pieces::expect_state(*reader, 5, 3, 9);
}

}  // namespace
