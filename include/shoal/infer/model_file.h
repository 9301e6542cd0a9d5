// SPDX-License-Identifier: Apache-2.0
// A model on disk: one GGUF file, or the files NAME-00001-of-0000N.gguf of a split model, seen as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/infer/gguf.h"

namespace shoal::infer {

class ModelFile {
 public:
  /// Opens the model that `path` names: any file of a split model finds the others. Reads headers only.
  /// Throws Error: io (missing file, naming the missing part of a split), format, unsupported.
  static ModelFile open(const std::string& path);

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  const std::string& path() const;  // of the first file
  const std::vector<std::string>& paths() const;
  const GgufMetadata& metadata() const;  // of the first file
  std::uint32_t version() const;
  const std::vector<TensorInfo>& tensors() const;  // of all files, in order
  std::uint64_t tensor_bytes() const;              // sum over all tensors

  const TensorInfo* find(std::string_view name) const;
  const TensorInfo& tensor(std::string_view name) const;  // throws format: "file: tensor NAME is missing"

  /// Reads bytes [begin, begin + out.size()) of the tensor's data into `out` with pread, in pieces.
  /// Safe to call from several threads. Throws io on a short read or an error of the system.
  void read(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> out) const;

  /// Hash of the headers of all files (64-bit FNV-1a over the header bytes): PEs compare it at start.
  std::uint64_t header_hash() const;

 private:
  struct State;
  explicit ModelFile(State&& state);
  std::unique_ptr<State> state_;
};

}  // namespace shoal::infer
