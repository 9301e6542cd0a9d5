// SPDX-License-Identifier: Apache-2.0
// Opening a model: one file, or all parts of a split one, and reading tensor data from it.
#include "shoal/infer/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "infer/gguf_names.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

// Headers of large vocabularies take some 20 MiB; far more is no header, and not worth reading.
constexpr std::uint64_t max_header_bytes = std::uint64_t{128} << 20;
constexpr std::uint64_t first_header_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t read_piece_bytes = std::uint64_t{64} << 20;
constexpr std::int64_t max_parts = 99999;  // five digits in the names

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Part {
  std::string path;
  Descriptor fd;
  std::uint64_t size = 0;
  GgufHeader header;
  std::uint64_t header_hash = 0;
};

/// Reads exactly out.size() bytes at `offset`.
void read_exactly(const Descriptor& fd, const std::string& path, std::uint64_t offset,
                  std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t want = std::min<std::size_t>(out.size(), read_piece_bytes);
    const ssize_t got = ::pread(fd.get(), out.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      fail(ErrorCode::io, fmt::format("{}: cannot read at byte {}: {}", path, offset, std::strerror(errno)));
    if (got == 0)
      fail(ErrorCode::io, fmt::format("{}: ends at byte {}, {} bytes early; was it changed while in use?",
                                      path, offset, out.size()));
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

/// FNV-1a continued from `hash` (Fowler, Noll, Vo; draft-eastlake-fnv).
std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

Descriptor open_file(const std::string& path, std::uint64_t& size) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer; regular files do not care.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
    fail(ErrorCode::io, fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  if (S_ISDIR(status.st_mode))
    fail(ErrorCode::io, fmt::format("{}: is a directory; name the GGUF file in it", path));
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::io, fmt::format("{}: is not a regular file", path));
  size = static_cast<std::uint64_t>(status.st_size);
  return fd;
}

/// Reads as little of the file as its header needs: the length is known only when it is parsed.
Part open_part(const std::string& path) {
  std::uint64_t size = 0;
  Part part{path, open_file(path, size), size, {}, 0};
  std::vector<std::byte> bytes;
  for (std::uint64_t want = first_header_bytes;; want *= 4) {
    const std::size_t have = bytes.size();
    bytes.resize(static_cast<std::size_t>(std::min({want, size, max_header_bytes})));
    read_exactly(part.fd, path, have, std::span(bytes).subspan(have));
    try {
      part.header = parse_gguf(bytes, size, path);
      break;
    } catch (const GgufNeedsMoreBytes&) {
      if (bytes.size() >= max_header_bytes)
        fail(ErrorCode::format, fmt::format("{}: its header is longer than {} MiB; the file is damaged", path,
                                            max_header_bytes >> 20));
    }
  }
  part.header_hash = fnv1a(std::span(bytes).first(static_cast<std::size_t>(part.header.header_bytes)));
  return part;
}

/// Where the last tensor ends, or the header when there is none.
std::uint64_t content_end(const GgufHeader& header) {
  std::uint64_t end = header.header_bytes;
  for (const TensorInfo& tensor : header.tensors)
    if (tensor.bytes > 0) end = std::max(end, tensor.offset + tensor.bytes);
  return end;
}

/// Files joined by `cat` look like the first of them: what is behind its end tells.
void refuse_concatenation(const Part& part) {
  const std::uint64_t end = content_end(part.header);
  const std::uint64_t alignment = part.header.alignment;
  for (const std::uint64_t place : {end, (end + alignment - 1) / alignment * alignment}) {
    std::byte magic[4];
    if (place + sizeof(magic) > part.size) continue;
    read_exactly(part.fd, part.path, place, magic);
    if (std::memcmp(magic, "GGUF", 4) == 0)
      fail(ErrorCode::format,
           fmt::format(
               "{}: another GGUF file begins at byte {}: parts of a split model cannot be joined with cat; "
               "keep them as separate files NAME-00001-of-0000N.gguf",
               part.path, place));
  }
}

struct SplitName {
  std::string stem;         // path up to "-00001-of-00003.gguf"
  std::int64_t number = 0;  // 1-based
  std::int64_t count = 0;
};

std::string split_path(const std::string& stem, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05d}-of-{:05d}.gguf", stem, number, count);
}

std::optional<SplitName> parse_split_name(const std::string& path) {
  constexpr std::string_view example = "-00001-of-00003.gguf";
  if (path.size() < example.size()) return std::nullopt;
  SplitName name;
  const std::size_t begin = path.size() - example.size();
  name.stem = path.substr(0, begin);
  std::from_chars(path.data() + begin + 1, path.data() + begin + 6, name.number);
  std::from_chars(path.data() + begin + 10, path.data() + begin + 15, name.count);
  if (name.number < 1 || name.count < 1 || split_path(name.stem, name.number, name.count) != path)
    return std::nullopt;
  return name;
}

/// Number of parts that a file says the model has; 1 for one that is not split.
std::int64_t split_count(const Part& part) {
  const std::int64_t count = part.header.metadata.integer_or("split.count", 1);
  if (count < 0 || count > max_parts)
    fail(ErrorCode::format,
         fmt::format("{}: key 'split.count' is {}, expected 1 to {}", part.path, count, max_parts));
  return std::max<std::int64_t>(count, 1);
}

/// Checks that a part's own keys say number `number` (1-based) of `count`.
void check_split_keys(const Part& part, std::int64_t number, std::int64_t count) {
  const std::int64_t own_count = split_count(part);
  const std::int64_t own_number = part.header.metadata.integer("split.no") + 1;
  if (own_count != count || own_number != number)
    fail(ErrorCode::format,
         fmt::format("{}: says that it is part {} of {}, its name says part {} of {}; was it renamed?",
                     part.path, own_number, own_count, number, count));
}

/// The parts of the model that `given` belongs to, in order.
std::vector<Part> open_parts(Part given) {
  std::vector<Part> parts;
  const std::int64_t count = split_count(given);
  if (count == 1) {
    parts.push_back(std::move(given));
    return parts;
  }
  const std::optional<SplitName> name = parse_split_name(given.path);
  if (!name)
    fail(ErrorCode::format,
         fmt::format(
             "{}: is part {} of {} of a split model, but its name does not end in -{:05d}-of-{:05d}.gguf, so "
             "the others cannot be found; give it its name back",
             given.path, given.header.metadata.integer("split.no") + 1, count,
             given.header.metadata.integer("split.no") + 1, count));
  check_split_keys(given, name->number, name->count);
  const std::string given_path = given.path;
  for (std::int64_t number = 1; number <= count; ++number) {
    if (number == name->number) {
      parts.push_back(std::move(given));
      continue;
    }
    const std::string path = split_path(name->stem, number, count);
    if (::access(path.c_str(), F_OK) != 0)
      fail(ErrorCode::io,
           fmt::format("{}: part {} of {} is missing; it belongs to {}", path, number, count, given_path));
    parts.push_back(open_part(path));
    refuse_concatenation(parts.back());
    check_split_keys(parts.back(), number, count);
  }
  return parts;
}

}  // namespace

struct ModelFile::State {
  std::vector<Part> parts;
  std::vector<std::string> paths;
  std::vector<TensorInfo> tensors;
  std::unordered_map<std::string_view, std::size_t> index;  // names in `tensors`, which never changes
  std::uint64_t tensor_bytes = 0;

  void add_tensors() {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      paths.push_back(parts[p].path);
      for (TensorInfo& tensor : parts[p].header.tensors) {
        tensor.file = static_cast<int>(p);
        tensor_bytes += tensor.bytes;  // each lies within its file, so the sum is far from overflow
        tensors.push_back(std::move(tensor));
      }
      parts[p].header.tensors.clear();
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const auto [other, is_new] = index.try_emplace(tensors[t].name, t);
      if (!is_new)
        fail(ErrorCode::format,
             fmt::format("{}: tensor '{}' is also in {}", paths[static_cast<std::size_t>(tensors[t].file)],
                         printable(tensors[t].name),
                         paths[static_cast<std::size_t>(tensors[other->second].file)]));
    }
  }

  void check_split_total() const {
    const GgufMetadata& metadata = parts.front().header.metadata;
    const auto found = static_cast<std::int64_t>(tensors.size());
    const std::int64_t total = metadata.integer_or("split.tensors.count", found);
    if (parts.size() > 1 && total != found)
      fail(ErrorCode::format,
           fmt::format(
               "{}: key 'split.tensors.count' is {}, the {} parts hold {} tensors; do they belong together?",
               metadata.source, total, parts.size(), found));
  }
};

ModelFile ModelFile::open(const std::string& path) {
  try {
    Part given = open_part(path);
    refuse_concatenation(given);
    State state;
    state.parts = open_parts(std::move(given));
    state.add_tensors();
    state.check_split_total();
    return ModelFile(std::move(state));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, fmt::format("{}: not enough memory to read the header", path));
  }
}

ModelFile::ModelFile(State&& state) : state_(std::make_unique<State>(std::move(state))) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

const std::string& ModelFile::path() const { return state_->paths.front(); }
const std::vector<std::string>& ModelFile::paths() const { return state_->paths; }
const GgufMetadata& ModelFile::metadata() const { return state_->parts.front().header.metadata; }
std::uint32_t ModelFile::version() const { return state_->parts.front().header.version; }
const std::vector<TensorInfo>& ModelFile::tensors() const { return state_->tensors; }
std::uint64_t ModelFile::tensor_bytes() const { return state_->tensor_bytes; }

const TensorInfo* ModelFile::find(std::string_view name) const {
  const auto found = state_->index.find(name);
  return found == state_->index.end() ? nullptr : &state_->tensors[found->second];
}

const TensorInfo& ModelFile::tensor(std::string_view name) const {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr) fail(ErrorCode::format, fmt::format("{}: tensor {} is missing", path(), name));
  return *tensor;
}

void ModelFile::read(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> out) const {
  if (tensor.file < 0 || static_cast<std::size_t>(tensor.file) >= state_->parts.size() ||
      begin > tensor.bytes || out.size() > tensor.bytes - begin)
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: bytes {} + {} of tensor '{}' lie outside its {}", path(), begin, out.size(),
                     printable(tensor.name), tensor.bytes));
  const Part& part = state_->parts[static_cast<std::size_t>(tensor.file)];
  read_exactly(part.fd, part.path, tensor.offset + begin, out);
}

std::uint64_t ModelFile::header_hash() const {
  std::uint64_t hash = fnv1a({});
  for (const Part& part : state_->parts) hash = fnv1a(std::as_bytes(std::span(&part.header_hash, 1)), hash);
  return hash;
}

}  // namespace shoal::infer
