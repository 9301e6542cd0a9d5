// SPDX-License-Identifier: Apache-2.0
// Arrays in files, whatever the format around them: which part each rank reads and writes, conversion,
// checksums.
#pragma once

#include <string>

#include "array/file.h"
#include "array/member_stream.h"
#include "array/npy_header.h"
#include "shoal/array/io.h"

namespace shoal::array {

/// One array in a file, as all ranks know it once rank 0 has looked.
struct ArraySource {
  std::string path;
  std::string label;  // for messages: the path, and the member
  NpyHeader header;
  Extent extent;         // header (where there is one) and data
  bool checked = false;  // whether `crc` is known, of header and data
  std::uint32_t crc = 0, header_crc = 0;
};

/// Collective: rank 0 looks, and all know. An error of `look` is thrown on all.
ArraySource agree_source(const comm::Communicator& communicator, const std::function<ArraySource()>& look);

/// Reads the header (.npy) that the extent of `source` begins with, and checks that its data are there.
void read_npy_header(const File& file, ArraySource& source);

/// Collective.
template <class T>
DistributedArray<T> read_array(const ArraySource& source, const comm::Communicator& communicator,
                               const LayoutOf& layout_of);

/// A layout maker that demands the shape of `layout`.
LayoutOf exactly(const Layout& layout);

/// A file that takes its name when it is whole. All calls but the destructor are collective.
class PartialFile {
 public:
  PartialFile(const comm::Communicator& communicator, const std::string& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  comm::Communicator& communicator() { return communicator_; }
  const std::string& path() const { return path_; }
  bool is_first() const { return communicator_.rank() == 0; }
  const File& file() const { return *file_; }
  void commit();

 private:
  comm::Communicator communicator_;
  std::string path_;
  std::unique_ptr<File> file_;
  bool created_ = false, committed_ = false;
};

/// Collective: writes the elements at `offset`. With `crc`, extends it by the CRC-32 of all of them.
template <class T>
void write_array(PartialFile& out, std::uint64_t offset, const DistributedArray<T>& x, Order order,
                 std::uint32_t* crc = nullptr);

}  // namespace shoal::array
