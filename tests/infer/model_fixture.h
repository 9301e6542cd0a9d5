// SPDX-License-Identifier: Apache-2.0
// Models for tests: made up, in a folder that goes with the test, or outside data when it is there.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer::test {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A random model as an open file.
struct OpenModel {
  explicit OpenModel(const RandomModelOptions& options)
      : file(ModelFile::open(write_random_model(folder.file(options.name + ".gguf"), options)[0])),
        config(read_config(file)) {}
  explicit OpenModel(const std::string& path) : file(ModelFile::open(path)), config(read_config(file)) {}

  TemporaryFolder folder;
  ModelFile file;
  ModelConfig config;
};

inline std::string test_model(const std::string& name) {
  return std::string(SHOAL_TEST_DATA) + "/models/" + name;
}

}  // namespace shoal::infer::test
