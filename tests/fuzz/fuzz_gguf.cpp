// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the GGUF parser and the lookups on what it accepts. Anything but Error is a finding,
// and so is a tensor that does not lie within the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "shoal/base/error.h"
#include "shoal/infer/gguf.h"

namespace {

using namespace shoal;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Call>
void may_fail(const Call& call) {
  try {
    call();
  } catch (const Error&) {
  }
}

void look_up(const infer::GgufMetadata& metadata) {
  for (const infer::GgufEntry& entry : metadata.entries) {
    require(metadata.has(entry.key));
    may_fail([&] { metadata.integer(entry.key); });
    may_fail([&] { metadata.real(entry.key); });
    may_fail([&] { metadata.boolean_or(entry.key, false); });
    may_fail([&] { metadata.string(entry.key); });
    may_fail([&] { metadata.strings(entry.key); });
    may_fail([&] { metadata.integers_or_empty(entry.key); });
    may_fail([&] { metadata.reals_or_empty(entry.key); });
  }
}

void check_tensors(const infer::GgufHeader& header, std::uint64_t file_size) {
  for (const infer::TensorInfo& tensor : header.tensors) {
    if (tensor.bytes == 0) continue;
    require(tensor.bytes <= file_size && tensor.offset <= file_size - tensor.bytes);
    require(tensor.offset >= header.data_offset);
    const std::int64_t row = tensor::row_bytes(tensor.format, tensor.columns());
    require(tensor.bytes == static_cast<std::uint64_t>(row * tensor.rows()));
  }
}

/// Parses a prefix of `have` bytes; true when it was accepted.
bool parse(std::span<const std::byte> bytes, std::size_t have) {
  try {
    const infer::GgufHeader header = infer::parse_gguf(bytes.first(have), bytes.size(), "fuzz.gguf");
    check_tensors(header, bytes.size());
    look_up(header.metadata);
    return true;
  } catch (const Error&) {
    return false;
  } catch (const infer::GgufNeedsMoreBytes&) {
    require(have < bytes.size());
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const bool whole = parse(bytes, size);
  // What a prefix suffices for, the whole file gives too.
  if (parse(bytes, size / 2)) require(whole);
  return 0;
}
