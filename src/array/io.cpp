// SPDX-License-Identifier: Apache-2.0
// .npy files and raw elements.
#include "shoal/array/io.h"

#include <fmt/format.h>

#include "array/array_file.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::array {
namespace {

ArraySource npy_source(const comm::Communicator& communicator, const std::string& path) {
  return agree_source(communicator, [&] {
    const File file(path, File::Mode::read);
    ArraySource source;
    source.path = source.label = path;
    source.extent.bytes = source.extent.inflated_bytes = file.size();
    read_npy_header(file, source);
    return source;
  });
}

ArraySource raw_source(const comm::Communicator& communicator, const std::string& path, DType dtype,
                       const Shape& shape, std::uint64_t offset) {
  return agree_source(communicator, [&] {
    const File file(path, File::Mode::read);
    ArraySource source;
    source.path = source.label = path;
    source.header.dtype = dtype;
    source.header.shape = shape;
    const std::uint64_t size = file.size(), needed = source.header.data_bytes();
    if (offset > size || needed > size - offset)
      fail(ErrorCode::format, fmt::format("{}: has {} bytes, but {} of {} at offset {} take {}", path, size,
                                          to_string(shape), to_string(dtype), offset, needed));
    source.extent = {offset, size - offset, false, size - offset};
    return source;
  });
}

}  // namespace

LayoutOf split_over(const comm::Communicator& communicator, int axis) {
  return
      [ranks = communicator.size(), axis](const Shape& shape) { return Layout::split(shape, ranks, axis); };
}

LayoutOf replicated_over(const comm::Communicator& communicator) {
  return [ranks = communicator.size()](const Shape& shape) { return Layout::replicated(shape, ranks); };
}

template <class T>
DistributedArray<T> read_npy(const std::string& path, const comm::Communicator& communicator,
                             const LayoutOf& layout_of) {
  return read_array<T>(npy_source(communicator, path), communicator, layout_of);
}

template <class T>
DistributedArray<T> read_npy(const std::string& path, const comm::Communicator& communicator,
                             const Layout& layout) {
  return read_npy<T>(path, communicator, exactly(layout));
}

template <class T>
void write_npy(const std::string& path, const DistributedArray<T>& x, Order order) {
  const std::string header = format_npy_header(dtype_of<T>, x.layout().shape(), order == Order::fortran);
  PartialFile out(x.communicator(), path);
  comm::agree(out.communicator(), [&] {
    if (out.is_first()) out.file().write(0, header.data(), header.size());
  });
  write_array(out, header.size(), x, order);
  out.commit();
}

template <class T>
DistributedArray<T> read_raw(const std::string& path, const comm::Communicator& communicator,
                             const Layout& layout, std::uint64_t offset) {
  return read_array<T>(raw_source(communicator, path, dtype_of<T>, layout.shape(), offset), communicator,
                       exactly(layout));
}

template <class T>
void write_raw(const std::string& path, const DistributedArray<T>& x, std::uint64_t offset) {
  PartialFile out(x.communicator(), path);
  comm::agree(out.communicator(), [&] {
    if (out.is_first()) out.file().resize(offset);
  });
  write_array(out, offset, x, Order::c);
  out.commit();
}

#define SHOAL_ARRAY_IO(T)                                                                                \
  template DistributedArray<T> read_npy(const std::string&, const comm::Communicator&, const LayoutOf&); \
  template DistributedArray<T> read_npy(const std::string&, const comm::Communicator&, const Layout&);   \
  template void write_npy(const std::string&, const DistributedArray<T>&, Order);                        \
  template DistributedArray<T> read_raw(const std::string&, const comm::Communicator&, const Layout&,    \
                                        std::uint64_t);                                                  \
  template void write_raw(const std::string&, const DistributedArray<T>&, std::uint64_t);
SHOAL_ARRAY_IO(float)
SHOAL_ARRAY_IO(double)
SHOAL_ARRAY_IO(std::complex<float>)
SHOAL_ARRAY_IO(std::complex<double>)
#undef SHOAL_ARRAY_IO

}  // namespace shoal::array
