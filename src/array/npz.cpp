// SPDX-License-Identifier: Apache-2.0
// .npz archives: zip archives whose members are .npy files.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "array/array_file.h"
#include "shoal/array/io.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::array {
namespace {

constexpr std::string_view suffix = ".npy";

// "model" of "model.npy".
std::string array_name(std::string member) {
  if (member.ends_with(suffix)) member.resize(member.size() - suffix.size());
  return member;
}

const ZipEntry& find_entry(const std::vector<ZipEntry>& entries, const std::string& name,
                           const std::string& path) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& entry) {
    return entry.name == name || array_name(entry.name) == name;
  });
  if (found != entries.end()) return *found;
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) names.push_back(array_name(entry.name));
  fail(ErrorCode::invalid_argument,
       fmt::format("{}: has no member '{}'; it has {}", path, name, fmt::join(names, ", ")));
}

ArraySource npz_source(const comm::Communicator& communicator, const std::string& path,
                       const std::string& name) {
  return agree_source(communicator, [&] {
    const File file(path, File::Mode::read);
    const std::vector<ZipEntry> entries = read_zip_directory(file);
    const ZipEntry& entry = find_entry(entries, name, path);
    ArraySource source;
    source.path = path;
    source.label = fmt::format("{}, member {}", path, entry.name);
    if (entry.method != ZipEntry::stored && entry.method != ZipEntry::deflated)
      fail(ErrorCode::unsupported,
           fmt::format("{}: compression method {}; stored (0) and deflated (8) are read", source.label,
                       entry.method));
    const bool deflated = entry.method == ZipEntry::deflated;
    if (!deflated && entry.bytes != entry.compressed_bytes)
      fail(ErrorCode::format, fmt::format("{}: stored, but of {} bytes in {}", source.label, entry.bytes,
                                          entry.compressed_bytes));
    source.extent = {zip_data_offset(file, entry), entry.compressed_bytes, deflated, entry.bytes};
    read_npy_header(file, source);
    if (source.header.data_offset + source.header.data_bytes() != entry.bytes)
      fail(ErrorCode::format, fmt::format("{}: has {} bytes, but its header and 'shape' {} make {}",
                                          source.label, entry.bytes, to_string(source.header.shape),
                                          source.header.data_offset + source.header.data_bytes()));
    source.checked = true;
    source.crc = entry.crc;
    return source;
  });
}

}  // namespace

template <class T>
DistributedArray<T> read_npz(const std::string& path, const std::string& name,
                             const comm::Communicator& communicator, const LayoutOf& layout_of) {
  return read_array<T>(npz_source(communicator, path, name), communicator, layout_of);
}

template <class T>
DistributedArray<T> read_npz(const std::string& path, const std::string& name,
                             const comm::Communicator& communicator, const Layout& layout) {
  return read_npz<T>(path, name, communicator, exactly(layout));
}

std::vector<std::string> npz_names(const std::string& path, const comm::Communicator& const_communicator) {
  comm::Communicator communicator = const_communicator;
  std::string joined;  // each name ends with a zero
  comm::agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const File file(path, File::Mode::read);
    for (const ZipEntry& entry : read_zip_directory(file)) joined += array_name(entry.name) + '\0';
  });
  joined = communicator.all_gather_strings(joined).front();
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < joined.size();) {
    const std::size_t end = joined.find('\0', begin);
    names.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

struct NpzWriter::State {
  State(const comm::Communicator& communicator, const std::string& path) : out(communicator, path) {}
  PartialFile out;
  std::vector<ZipEntry> entries;
  std::uint64_t end = 0;  // of what has been written
};

NpzWriter::NpzWriter(const std::string& path, const comm::Communicator& communicator)
    : state_(std::make_unique<State>(communicator, path)) {}
NpzWriter::~NpzWriter() = default;
NpzWriter::NpzWriter(NpzWriter&&) noexcept = default;

template <class T>
void NpzWriter::add(const std::string& name, const DistributedArray<T>& x, Order order) {
  if (!state_)
    fail(ErrorCode::invalid_argument, fmt::format("member '{}' is added to a closed archive", name));
  ZipEntry entry;
  entry.name = name + std::string(suffix);
  constexpr std::size_t longest_name = 0xffff;
  if (name.empty() || entry.name.size() > longest_name)
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: a member's name of {} bytes", state_->out.path(), name.size()));
  for (const ZipEntry& other : state_->entries)
    if (other.name == entry.name)
      fail(ErrorCode::invalid_argument, fmt::format("{}: two members '{}'", state_->out.path(), name));
  const std::string header = format_npy_header(dtype_of<T>, x.layout().shape(), order == Order::fortran);
  entry.header_offset = state_->end;
  entry.bytes = entry.compressed_bytes = header.size() + static_cast<std::uint64_t>(x.size()) * sizeof(T);
  // The checksum stands before the data, so what stands there is written last; its length is known.
  const std::uint64_t begin = state_->end + format_zip_header(entry).size();
  entry.crc = extend_crc(0, header.data(), header.size());
  write_array(state_->out, begin + header.size(), x, order, &entry.crc);
  comm::agree(state_->out.communicator(), [&] {
    const std::string before = format_zip_header(entry) + header;
    if (state_->out.is_first()) state_->out.file().write(entry.header_offset, before.data(), before.size());
  });
  state_->end = begin + entry.bytes;
  state_->entries.push_back(std::move(entry));
}

void NpzWriter::close() {
  if (!state_) fail(ErrorCode::invalid_argument, "an archive is closed twice");
  comm::agree(state_->out.communicator(), [&] {
    const std::string directory = format_zip_directory(state_->entries, state_->end);
    if (state_->out.is_first()) state_->out.file().write(state_->end, directory.data(), directory.size());
  });
  state_->out.commit();
  state_.reset();
}

#define SHOAL_ARRAY_NPZ(T)                                                                                 \
  template DistributedArray<T> read_npz(const std::string&, const std::string&, const comm::Communicator&, \
                                        const LayoutOf&);                                                  \
  template DistributedArray<T> read_npz(const std::string&, const std::string&, const comm::Communicator&, \
                                        const Layout&);                                                    \
  template void NpzWriter::add(const std::string&, const DistributedArray<T>&, Order);
SHOAL_ARRAY_NPZ(float)
SHOAL_ARRAY_NPZ(double)
SHOAL_ARRAY_NPZ(std::complex<float>)
SHOAL_ARRAY_NPZ(std::complex<double>)
#undef SHOAL_ARRAY_NPZ

}  // namespace shoal::array
