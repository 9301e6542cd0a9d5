// SPDX-License-Identifier: Apache-2.0
// Arrays in files: NumPy's .npy and .npz, and raw elements. Every rank reads and writes its own part of one
// file that all ranks see. All calls are collective, and errors are thrown on all ranks alike: one line that
// names the file and the field.
//
// Files are read as what they hold (integers, bool, half to double precision, complex, either byte order, C
// or Fortran order) and converted to T; complex numbers do not become real. They are written as T, little
// endian. A file is written under the name with ".partial" behind it and gets its own name when it is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/array/distributed_array.h"

namespace shoal::array {

/// The layout for a shape that is found in a file.
using LayoutOf = std::function<Layout(const Shape&)>;
/// Slabs along `axis`, or everything everywhere.
LayoutOf split_over(const comm::Communicator& communicator, int axis = 0);
LayoutOf replicated_over(const comm::Communicator& communicator);

enum class Order : std::uint8_t { c, fortran };

template <class T>
DistributedArray<T> read_npy(const std::string& path, const comm::Communicator& communicator,
                             const LayoutOf& layout_of);
/// The file's shape must be that of `layout`.
template <class T>
DistributedArray<T> read_npy(const std::string& path, const comm::Communicator& communicator,
                             const Layout& layout);
template <class T>
void write_npy(const std::string& path, const DistributedArray<T>& x, Order order = Order::c);

/// Member `name` of an .npz archive ("model" for model.npy), stored or deflated; its checksum is verified.
/// A deflated one has to be inflated from its beginning, which every rank does as far as its part.
template <class T>
DistributedArray<T> read_npz(const std::string& path, const std::string& name,
                             const comm::Communicator& communicator, const LayoutOf& layout_of);
template <class T>
DistributedArray<T> read_npz(const std::string& path, const std::string& name,
                             const comm::Communicator& communicator, const Layout& layout);
/// Collective: names of the arrays in an archive, in its order.
std::vector<std::string> npz_names(const std::string& path, const comm::Communicator& communicator);

/// Writes an archive of stored members, of which every rank writes its parts.
///   NpzWriter file("result.npz", communicator);
///   file.add("model", model);
///   file.close();
class NpzWriter {
 public:
  NpzWriter(const std::string& path, const comm::Communicator& communicator);
  /// Without close() nothing remains of the file.
  ~NpzWriter();
  NpzWriter(NpzWriter&&) noexcept;

  template <class T>
  void add(const std::string& name, const DistributedArray<T>& x, Order order = Order::c);
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Elements of T in this machine's byte order and in C order, from byte `offset` of the file on.
template <class T>
DistributedArray<T> read_raw(const std::string& path, const comm::Communicator& communicator,
                             const Layout& layout, std::uint64_t offset = 0);
/// The file is written anew; the first `offset` bytes are zeros.
template <class T>
void write_raw(const std::string& path, const DistributedArray<T>& x, std::uint64_t offset = 0);

}  // namespace shoal::array
