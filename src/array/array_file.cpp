// SPDX-License-Identifier: Apache-2.0
#include "array/array_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "array/element_conversion.h"
#include "array/guarded.h"
#include "array/local_parts.h"
#include "array/transpose.h"
#include "shoal/array/redistribution.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

Shape reversed(Shape shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

// How an array of such a layout is cut for a file: consecutive parts in rank order. In Fortran order the file
// is the C order of the reversed axes.
Layout file_layout(const Layout& layout, bool fortran) {
  if (fortran) return Layout::split(reversed(layout.shape()), layout.ranks());
  if (is_in_rank_order(layout)) return layout;
  return Layout::split({layout.size()}, layout.ranks());
}
bool is_transposed(const Shape& shape, bool fortran) { return fortran && shape.size() > 1; }

Index elements_before(const Layout& layout, Rank rank) {
  Index elements = 0;
  for (Rank r = 0; r < rank; ++r) elements += layout.local_size(r);
  return elements;
}

// CRC-32 of the parts of all ranks in rank order, behind what gave `crc`.
std::uint32_t joined_parts(comm::Communicator& communicator, std::uint32_t crc, std::uint32_t part,
                           std::uint64_t part_bytes) {
  const std::uint64_t mine[2] = {part, part_bytes};
  const std::vector<std::uint64_t> all = communicator.all_gather(std::span<const std::uint64_t>(mine));
  for (std::size_t i = 0; i < all.size(); i += 2)
    crc = joined_crc(crc, static_cast<std::uint32_t>(all[i]), all[i + 1]);
  return crc;
}

// This rank's part of the data; returns the CRC-32 of its bytes in the file, where it is wanted.
template <class T>
std::uint32_t read_part(const ArraySource& source, Index first, std::span<T> out) {
  const File file(source.path, File::Mode::read);
  MemberStream stream(file, source.extent);
  const std::size_t item = size_of(source.header.dtype);
  stream.skip(source.header.data_offset + static_cast<std::uint64_t>(first) * item);
  const bool direct = source.header.dtype == dtype_of<T> && !source.header.swapped;
  std::uint32_t crc = 0;
  constexpr std::size_t chunk = std::size_t{1} << 18;  // elements
  std::vector<std::byte> raw(direct ? 0 : std::min(chunk, out.size()) * item);
  for (std::size_t begin = 0; begin < out.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, out.size() - begin);
    void* to = direct ? static_cast<void*>(out.data() + begin) : raw.data();
    stream.read(to, count * item);
    if (source.checked && !source.extent.deflated) crc = extend_crc(crc, to, count * item);
    if (!direct)
      convert_elements(source.header.dtype, source.header.swapped, raw.data(), out.subspan(begin, count));
  }
  return source.extent.deflated ? stream.crc() : crc;
}

void check_crc(const ArraySource& source, std::uint32_t found) {
  if (found != source.crc)
    fail(ErrorCode::format, fmt::format("{}: the checksum of its data is {:08x}, but should be {:08x}",
                                        source.label, found, source.crc));
}

// Collective: the data in the order of the file.
template <class T>
DistributedArray<T> read_parts(const ArraySource& source, comm::Communicator& communicator,
                               const Layout& layout) {
  std::optional<DistributedArray<T>> parts;
  const Rank rank = communicator.rank(), last = communicator.size() - 1;
  const Index first = elements_before(layout, rank);
  std::uint32_t crc = 0;
  comm::agree(communicator, [&] {
    parts.emplace(communicator, layout, uninitialised);
    crc = read_part(source, first, parts->local());
    // The last rank has inflated all of it.
    if (source.checked && source.extent.deflated && rank == last) check_crc(source, crc);
  });
  if (source.checked && !source.extent.deflated) {
    const std::uint64_t bytes = parts->local().size() * size_of(source.header.dtype);
    const std::uint32_t whole = joined_parts(communicator, source.header_crc, crc, bytes);
    comm::agree(communicator, [&] { check_crc(source, whole); });
  }
  return std::move(*parts);
}

// The members of an ArraySource as numbers, for a broadcast.
std::vector<std::int64_t> packed(const ArraySource& source) {
  const NpyHeader& header = source.header;
  std::vector<std::int64_t> numbers = {static_cast<std::int64_t>(header.dtype),
                                       header.swapped,
                                       header.fortran_order,
                                       static_cast<std::int64_t>(header.data_offset),
                                       static_cast<std::int64_t>(source.extent.offset),
                                       static_cast<std::int64_t>(source.extent.bytes),
                                       source.extent.deflated,
                                       static_cast<std::int64_t>(source.extent.inflated_bytes),
                                       source.checked,
                                       source.crc,
                                       source.header_crc};
  numbers.insert(numbers.end(), header.shape.begin(), header.shape.end());
  return numbers;
}

void unpack(std::span<const std::int64_t> numbers, ArraySource& source) {
  std::size_t i = 0;
  const auto next = [&] { return numbers[i++]; };
  NpyHeader& header = source.header;
  header.dtype = static_cast<DType>(next());
  header.swapped = next() != 0;
  header.fortran_order = next() != 0;
  header.data_offset = static_cast<std::uint64_t>(next());
  source.extent.offset = static_cast<std::uint64_t>(next());
  source.extent.bytes = static_cast<std::uint64_t>(next());
  source.extent.deflated = next() != 0;
  source.extent.inflated_bytes = static_cast<std::uint64_t>(next());
  source.checked = next() != 0;
  source.crc = static_cast<std::uint32_t>(next());
  source.header_crc = static_cast<std::uint32_t>(next());
  header.shape.assign(numbers.begin() + static_cast<std::ptrdiff_t>(i), numbers.end());
}

void broadcast_string(comm::Communicator& communicator, std::string& text) {
  std::int64_t length[1] = {static_cast<std::int64_t>(text.size())};
  communicator.broadcast(std::span(length), 0);
  text.resize(at(length[0]));
  communicator.broadcast(text, 0);
}

// Errors of one rank become everyone's: each step allocates as much again as the array takes.
Guard agreeing(comm::Communicator& communicator) {
  return [&communicator](const std::function<void()>& local) { comm::agree(communicator, local); };
}

// Collective: `x` with its axes in reversed order; `to` has this rank's part of that.
template <class T>
DistributedArray<T> reversed(const DistributedArray<T>& x, const Layout& to, const Guard& guard) {
  std::optional<DistributedArray<T>> result;
  guard([&] { result.emplace(x.communicator(), to, uninitialised); });
  reverse_axes(x.local().data(), x.local_shape(), result->local().data());
  return std::move(*result);
}

// Collective: the elements of `x` in the order of the file, consecutive parts in rank order.
template <class T>
DistributedArray<T> ordered_for_file(const DistributedArray<T>& x, bool transposed) {
  const Layout& layout = x.layout();
  comm::Communicator communicator = x.communicator();
  const Guard guard = agreeing(communicator);
  if (!transposed) return reshape(x, file_layout(layout, false), guard);
  const DistributedArray<T> slab = redistribute(x, Layout::split(layout.shape(), layout.ranks(), -1), guard);
  return reversed(slab, file_layout(layout, true), guard);
}

}  // namespace

ArraySource agree_source(const comm::Communicator& const_communicator,
                         const std::function<ArraySource()>& look) {
  comm::Communicator communicator = const_communicator;
  ArraySource source;
  comm::agree(communicator, [&] {
    if (communicator.rank() == 0) source = look();
  });
  broadcast_string(communicator, source.path);
  broadcast_string(communicator, source.label);
  std::vector<std::int64_t> numbers = packed(source);
  std::int64_t length[1] = {static_cast<std::int64_t>(numbers.size())};
  communicator.broadcast(std::span(length), 0);
  numbers.resize(at(length[0]));
  communicator.broadcast(numbers, 0);
  unpack(numbers, source);
  return source;
}

void read_npy_header(const File& file, ArraySource& source) {
  MemberStream stream(file, source.extent);
  std::vector<std::byte> bytes(std::min<std::uint64_t>(npy_prefix_bytes, source.extent.inflated_bytes));
  stream.read(bytes.data(), bytes.size());
  const std::size_t length = npy_header_bytes(bytes, source.label);
  if (length > source.extent.inflated_bytes)
    fail(ErrorCode::format, fmt::format("{}: ends within the .npy header", source.label));
  if (length > bytes.size()) {
    const std::size_t got = bytes.size();
    bytes.resize(length);
    stream.read(bytes.data() + got, length - got);
  }
  source.header = parse_npy_header(bytes, source.label);
  source.header_crc = extend_crc(0, bytes.data(), std::min(length, bytes.size()));
  const std::uint64_t there = source.extent.inflated_bytes - source.header.data_offset;
  if (there < source.header.data_bytes())
    fail(ErrorCode::format, fmt::format("{}: holds {} bytes of data, but 'shape' {} of {} needs {}",
                                        source.label, there, to_string(source.header.shape),
                                        to_string(source.header.dtype), source.header.data_bytes()));
}

LayoutOf exactly(const Layout& layout) {
  return [layout](const Shape&) { return layout; };
}

template <class T>
DistributedArray<T> read_array(const ArraySource& source, const comm::Communicator& const_communicator,
                               const LayoutOf& layout_of) {
  comm::Communicator communicator = const_communicator;
  const NpyHeader& header = source.header;
  const Layout layout = layout_of(header.shape);
  if (layout.shape() != header.shape)
    fail(ErrorCode::invalid_argument, fmt::format("{}: holds an array of shape {}, but the layout is {}",
                                                  source.label, to_string(header.shape), layout.describe()));
  if (!is_complex<T> && (header.dtype == DType::complex64 || header.dtype == DType::complex128))
    fail(ErrorCode::invalid_argument, fmt::format("{}: holds {}, which does not become {}", source.label,
                                                  to_string(header.dtype), to_string(dtype_of<T>)));
  const bool transposed = is_transposed(header.shape, header.fortran_order);
  DistributedArray<T> parts = read_parts<T>(source, communicator, file_layout(layout, transposed));
  const Guard guard = agreeing(communicator);
  if (!transposed) return parts.layout() == layout ? std::move(parts) : reshape(parts, layout, guard);
  const Layout last = Layout::split(header.shape, layout.ranks(), -1);
  // (Equal layouts may still name another axis: on one rank.)
  DistributedArray<T> slab = reversed(parts, last == layout ? layout : last, guard);
  return slab.layout() == layout ? std::move(slab) : redistribute(slab, layout, guard);
}

PartialFile::PartialFile(const comm::Communicator& communicator, const std::string& path)
    : communicator_(communicator), path_(path) {
  const std::string partial = path + ".partial";
  comm::agree(communicator_, [&] {
    if (is_first()) file_ = std::make_unique<File>(partial, File::Mode::create);
    created_ = is_first();
  });
  try {
    comm::agree(communicator_, [&] {
      if (!is_first()) file_ = std::make_unique<File>(partial, File::Mode::write);
    });
  } catch (...) {  // the destructor will not be called
    if (created_) remove_file(partial);
    throw;
  }
}

PartialFile::~PartialFile() {
  if (created_ && !committed_) remove_file(path_ + ".partial");
}

void PartialFile::commit() {
  comm::agree(communicator_, [&] { file_->close(); });
  comm::agree(communicator_, [&] {
    if (is_first()) rename_file(path_ + ".partial", path_);
  });
  committed_ = true;
}

template <class T>
void write_array(PartialFile& out, std::uint64_t offset, const DistributedArray<T>& x, Order order,
                 std::uint32_t* crc) {
  const bool transposed = is_transposed(x.layout().shape(), order == Order::fortran);
  std::optional<DistributedArray<T>> ordered;
  if (transposed || !is_in_rank_order(x.layout())) ordered.emplace(ordered_for_file(x, transposed));
  const DistributedArray<T>& parts = ordered ? *ordered : x;
  const std::span<const T> mine = parts.local();
  comm::Communicator& communicator = out.communicator();
  const auto first = static_cast<std::uint64_t>(elements_before(parts.layout(), communicator.rank()));
  comm::agree(communicator,
              [&] { out.file().write(offset + first * sizeof(T), mine.data(), mine.size_bytes()); });
  if (crc)
    *crc = joined_parts(communicator, *crc, extend_crc(0, mine.data(), mine.size_bytes()), mine.size_bytes());
}

#define SHOAL_ARRAY_FILE(T)                                                                                \
  template DistributedArray<T> read_array(const ArraySource&, const comm::Communicator&, const LayoutOf&); \
  template void write_array(PartialFile&, std::uint64_t, const DistributedArray<T>&, Order, std::uint32_t*);
SHOAL_ARRAY_FILE(float)
SHOAL_ARRAY_FILE(double)
SHOAL_ARRAY_FILE(std::complex<float>)
SHOAL_ARRAY_FILE(std::complex<double>)
#undef SHOAL_ARRAY_FILE

}  // namespace shoal::array
