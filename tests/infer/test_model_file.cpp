// SPDX-License-Identifier: Apache-2.0
// Models on disk: whole, split, damaged, and files that are no models.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "infer/gguf_support.h"
#include "shoal/infer/gguf_writer.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using testing::Bytes;
using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryFolder;
using testing::write_bytes;

std::vector<std::byte> read_tensor(const ModelFile& model, const TensorInfo& tensor) {
  std::vector<std::byte> data(tensor.bytes);
  model.read(tensor, 0, data);
  return data;
}

void expect_same_tensors(const ModelFile& a, const ModelFile& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  EXPECT_EQ(a.tensor_bytes(), b.tensor_bytes());
  for (const TensorInfo& tensor : a.tensors())
    EXPECT_EQ(read_tensor(a, tensor), read_tensor(b, b.tensor(tensor.name))) << tensor.name;
}

/// A small file of tensors "t0".."t4", 64 bytes each, tensor n filled with the byte n.
GgufWriter five_tensors() {
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  for (int n = 0; n < 5; ++n)
    writer.add_tensor("t" + std::to_string(n), {16}, Format::f32, std::vector<std::byte>(64, std::byte(n)));
  return writer;
}

TEST(ModelFile, ReadsTensors) {
  TemporaryFolder folder;
  five_tensors().write(folder.file("m.gguf"));
  const ModelFile model = ModelFile::open(folder.file("m.gguf"));
  EXPECT_EQ(model.path(), folder.file("m.gguf"));
  EXPECT_EQ(model.version(), 3u);
  EXPECT_EQ(model.tensor_bytes(), 320u);
  EXPECT_EQ(model.find("t9"), nullptr);
  expect_error(ErrorCode::format, {"m.gguf", "t9", "missing"}, [&] { model.tensor("t9"); });
  std::vector<std::byte> piece(3);
  model.read(model.tensor("t3"), 61, piece);
  EXPECT_EQ(piece, std::vector<std::byte>(3, std::byte{3}));
  for (const std::uint64_t begin : {std::uint64_t{62}, std::uint64_t{65}, ~std::uint64_t{0}})
    expect_error(ErrorCode::invalid_argument, {"m.gguf", "'t3'"},
                 [&] { model.read(model.tensor("t3"), begin, piece); });
}

TEST(ModelFile, ReadsFromSeveralThreads) {
  TemporaryFolder folder;
  const auto model = ModelFile::open(write_random_model(folder.file("m.gguf")).front());
  std::vector<std::vector<std::vector<std::byte>>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&] {
      for (const TensorInfo& tensor : model.tensors()) mine.push_back(read_tensor(model, tensor));
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 1; t < seen.size(); ++t) EXPECT_EQ(seen[t], seen[0]);
}

TEST(ModelFile, ShrunkenFileIsAnErrorNotZeros) {
  TemporaryFolder folder;
  five_tensors().write(folder.file("m.gguf"));
  const ModelFile model = ModelFile::open(folder.file("m.gguf"));
  std::filesystem::resize_file(folder.file("m.gguf"), std::filesystem::file_size(folder.file("m.gguf")) - 10);
  std::vector<std::byte> data(64);
  expect_error(ErrorCode::io, {"m.gguf", "10 bytes early"}, [&] { model.read(model.tensor("t4"), 0, data); });
}

TEST(ModelFile, EveryPrefixOfAModelIsRefused) {
  TemporaryFolder folder;
  five_tensors().write(folder.file("m.gguf"));
  const auto bytes = read_bytes(folder.file("m.gguf"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    write_bytes(folder.file("cut.gguf"), std::span(bytes).first(size));
    expect_error(ErrorCode::format, {"cut.gguf"}, [&] { ModelFile::open(folder.file("cut.gguf")); });
  }
  EXPECT_NO_THROW(ModelFile::open(folder.file("m.gguf")));
}

TEST(ModelFile, ThingsThatAreNoModels) {
  TemporaryFolder folder;
  expect_error(ErrorCode::io, {"absent.gguf", "No such file"},
               [&] { ModelFile::open(folder.file("absent.gguf")); });
  std::filesystem::create_directory(folder.file("best-of-breed.gguf"));
  expect_error(ErrorCode::io, {"best-of-breed.gguf", "directory"},
               [&] { ModelFile::open(folder.file("best-of-breed.gguf")); });
  ASSERT_EQ(::mkfifo(folder.file("pipe.gguf").c_str(), 0600), 0);
  expect_error(ErrorCode::io, {"pipe.gguf", "not a regular file"},
               [&] { ModelFile::open(folder.file("pipe.gguf")); });
  const auto pointer =
      Bytes().raw("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  write_bytes(folder.file("pointer.gguf"), pointer.data());
  expect_error(ErrorCode::format, {"pointer.gguf", "git lfs pull"},
               [&] { ModelFile::open(folder.file("pointer.gguf")); });
}

TEST(ModelFile, HeaderLongerThanTheFirstRead) {
  TemporaryFolder folder;
  GgufWriter writer = five_tensors();
  writer.set("texts", std::vector<std::string>(300'000, "a piece of text"));
  writer.write(folder.file("m.gguf"));
  const ModelFile model = ModelFile::open(folder.file("m.gguf"));
  EXPECT_EQ(model.metadata().strings("texts").size(), 300'000u);
  EXPECT_EQ(read_tensor(model, model.tensor("t4")), std::vector<std::byte>(64, std::byte{4}));
}

TEST(ModelFile, HeaderHash) {
  TemporaryFolder folder;
  const auto hash = [&](const GgufWriter& writer) {
    writer.write(folder.file("m.gguf"));
    return ModelFile::open(folder.file("m.gguf")).header_hash();
  };
  const std::uint64_t one = hash(five_tensors());
  EXPECT_EQ(hash(five_tensors()), one);
  EXPECT_NE(hash(five_tensors().set("more", true)), one);
  EXPECT_NE(hash(five_tensors().remove_tensor("t4")), one);
}

// ---- files that ask for more memory than there is

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool address_space_can_be_limited = false;  // sanitizers reserve terabytes
#else
constexpr bool address_space_can_be_limited = true;
#endif

/// Opens `path` in a child process of at most 256 MiB address space and 5 s: 0 when the file is refused
/// as it should be, with a format error.
int open_with_little_memory(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    const rlimit limit{std::size_t{256} << 20, std::size_t{256} << 20};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
    try {
      ModelFile::open(path);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::format ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(ModelFile, HugeCountsInASmallFileCostNothing) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "a sanitizer needs more address space than the limit";
  TemporaryFolder folder;
  const std::string path = folder.file("m.gguf");
  for (const std::uint64_t huge : {~std::uint64_t{0}, std::uint64_t{1} << 30}) {
    const Bytes files[] = {
        Bytes::header(huge, 0),
        Bytes::header(0, huge),
        Bytes::header(0, 1).u64(huge),
        Bytes::header(0, 1).string("k").u32(8).u64(huge),
        Bytes::header(0, 1).string("k").u32(9).u32(4).u64(huge),
        Bytes::header(0, 1).string("k").u32(9).u32(8).u64(huge),
    };
    for (const Bytes& file : files) {
      Bytes padded = file;
      padded.zeros(160 - file.data().size());
      write_bytes(path, padded.data());
      EXPECT_EQ(open_with_little_memory(path), 0) << huge << " in file " << &file - files;
    }
  }
}

// ---- split models

class SplitModel : public ::testing::Test {
 protected:
  SplitModel() : paths(five_tensors().write_split(folder.file("m.gguf"), 3)) {
    five_tensors().write(folder.file("whole.gguf"));
  }
  TemporaryFolder folder;
  std::vector<std::string> paths;
};

TEST_F(SplitModel, OpensFromEachPart) {
  EXPECT_EQ(paths[1], folder.file("m-00002-of-00003.gguf"));
  const ModelFile whole = ModelFile::open(folder.file("whole.gguf"));
  const std::uint64_t hash = ModelFile::open(paths[0]).header_hash();
  for (const std::string& path : paths) {
    const ModelFile model = ModelFile::open(path);
    EXPECT_EQ(model.paths(), paths);
    EXPECT_EQ(model.path(), paths[0]);
    EXPECT_EQ(model.metadata().string("general.architecture"), "llama");
    EXPECT_EQ(model.header_hash(), hash);
    expect_same_tensors(whole, model);
  }
}

TEST_F(SplitModel, MissingPartIsNamed) {
  std::filesystem::remove(paths[1]);
  for (const std::string& given : {paths[0], paths[2]})
    expect_error(ErrorCode::io, {paths[1], "part 2 of 3", "missing", given}, [&] { ModelFile::open(given); });
}

TEST_F(SplitModel, ConcatenationIsExplained) {
  std::vector<std::byte> joined;
  for (const std::string& path : paths) {
    const auto bytes = read_bytes(path);
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  for (const char* name : {"joined.gguf", "m-00001-of-00003.gguf"}) {
    write_bytes(folder.file(name), joined);
    expect_error(ErrorCode::format, {name, "another GGUF file begins", "cat"},
                 [&] { ModelFile::open(folder.file(name)); });
  }
}

TEST_F(SplitModel, RenamedPartsAreExplained) {
  std::filesystem::copy_file(paths[1], folder.file("renamed.gguf"));
  expect_error(ErrorCode::format, {"renamed.gguf", "part 2 of 3", "-00002-of-00003.gguf"},
               [&] { ModelFile::open(folder.file("renamed.gguf")); });
  std::filesystem::rename(paths[2], folder.file("m-00001-of-00003.gguf"));
  expect_error(ErrorCode::format, {"m-00001-of-00003.gguf", "part 3 of 3", "part 1 of 3"},
               [&] { ModelFile::open(folder.file("m-00001-of-00003.gguf")); });
}

TEST_F(SplitModel, PartOfAnotherModel) {
  five_tensors().remove_tensor("t4").write_split(folder.file("other.gguf"), 3);
  std::filesystem::copy_file(folder.file("other-00003-of-00003.gguf"), paths[2],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(ModelFile::open(paths[0]), Error);
}

TEST_F(SplitModel, TotalOfTensorsIsChecked) {
  GgufWriter last;  // the third part, one tensor short
  last.set("split.no", std::uint16_t{2}).set("split.count", std::uint16_t{3});
  last.set("split.tensors.count", std::int32_t{5});
  last.write(paths[2]);
  expect_error(ErrorCode::format, {"split.tensors.count", "5", "3 tensors"},
               [&] { ModelFile::open(paths[0]); });
}

TEST_F(SplitModel, DuplicateTensorAcrossParts) {
  GgufWriter last;
  last.set("split.no", std::uint16_t{2}).set("split.count", std::uint16_t{3});
  last.add_tensor("t0", {16}, Format::f32, std::vector<std::byte>(64));
  last.write(paths[2]);
  expect_error(ErrorCode::format, {paths[2], "'t0'", paths[0]}, [&] { ModelFile::open(paths[1]); });
}

TEST_F(SplitModel, EachPartIsValidated) {
  const auto bytes = read_bytes(paths[1]);
  write_bytes(paths[1], std::span(bytes).first(bytes.size() - 1));
  expect_error(ErrorCode::format, {paths[1], "truncated"}, [&] { ModelFile::open(paths[0]); });
}

TEST_F(SplitModel, ImpossibleSplitKeys) {
  const auto with_count = [&](std::int32_t count) {
    return five_tensors().set("split.no", std::uint16_t{0}).set("split.count", count);
  };
  for (const std::int32_t count : {-1, 100'000}) {
    with_count(count).write(folder.file("bad.gguf"));
    expect_error(ErrorCode::format, {"bad.gguf", "split.count", std::to_string(count)},
                 [&] { ModelFile::open(folder.file("bad.gguf")); });
  }
  with_count(1).write(folder.file("one.gguf"));
  EXPECT_EQ(ModelFile::open(folder.file("one.gguf")).paths().size(), 1u);
}

TEST_F(SplitModel, KeepsItsAlignment) {
  const auto aligned = five_tensors().set_alignment(256).write_split(folder.file("a.gguf"), 2);
  const ModelFile model = ModelFile::open(aligned[1]);
  for (const TensorInfo& tensor : model.tensors()) EXPECT_EQ(tensor.offset % 256, 0u);
  expect_same_tensors(ModelFile::open(folder.file("whole.gguf")), model);
}

// ---- files of other writers

std::string data_file(const std::string& name) { return std::string(SHOAL_TEST_DATA) + "/" + name; }

TEST(ModelFile, FileOfAnotherWriter) {
  const std::string path = data_file("models/stories260K.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const ModelFile model = ModelFile::open(path);
  EXPECT_EQ(model.tensors().size(), 47u);
  EXPECT_EQ(model.metadata().string("general.name"), "stories260K");
  const ModelConfig config = read_config(model);
  EXPECT_EQ(config.layers, 5);
  EXPECT_EQ(config.width, 64);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.vocabulary, 512);
  EXPECT_TRUE(config.tied_output);
}

TEST(ModelFile, VocabularyWithoutTensors) {
  const std::string path = data_file("vocabs/llama-spm.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const ModelFile model = ModelFile::open(path);
  EXPECT_TRUE(model.tensors().empty());
  EXPECT_EQ(model.metadata().strings("tokenizer.ggml.tokens").size(), 32000u);
  expect_error(ErrorCode::format, {"llama-spm.gguf", "token_embd.weight", "missing"},
               [&] { read_config(model); });
}

}  // namespace
}  // namespace shoal::infer
