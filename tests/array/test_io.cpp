// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/io.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::value;
using testing::values;

// A folder of its own for each test, gone at the end.
class IoTest : public ::testing::Test {
 protected:
  IoTest() {
    static std::atomic<int> count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("shoal-array-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
  }
  ~IoTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string bytes(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path folder_;
};

// A .npy file as NumPy writes it.
std::string npy(const std::string& text, const std::string& data, int version = 1) {
  std::string header = text;
  header.append(63 - (header.size() + (version == 1 ? 10 : 12)) % 64, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2u : 4u); ++i)
    out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}
std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

template <class U>
std::string bytes_of(const std::vector<U>& elements, bool swapped = false) {
  std::string out;
  for (const U& element : elements) {
    char bytes[sizeof(U)];
    std::memcpy(bytes, &element, sizeof(U));
    if (swapped) std::reverse(std::begin(bytes), std::end(bytes));
    out.append(bytes, sizeof(U));
  }
  return out;
}

static_assert(std::endian::native == std::endian::little, "the bytes below are little endian");

using Npy = IoTest;
using Npz = IoTest;
using Raw = IoTest;

TEST_F(Npy, RoundTripsOfEveryTypeLayoutAndOrder) {
  on_ranks([&](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      for (const Shape& shape : {Shape{7, 5, 9}, Shape{2, 1}, Shape{5}, Shape{0, 3}})
        for (const Layout& layout : testing::layouts(shape, world.size()))
          for (const Order order : {Order::c, Order::fortran}) {
            SCOPED_TRACE(layout.describe());
            const auto x = filled<T>(world, layout);
            write_npy(path("a.npy"), x, order);
            const auto same = read_npy<T>(path("a.npy"), world, layout);
            ASSERT_EQ(same.layout().split_axis(), layout.split_axis());
            ASSERT_TRUE(
                std::equal(x.local().begin(), x.local().end(), same.local().begin(), same.local().end()));
            const auto other = read_npy<T>(path("a.npy"), world, split_over(world, -1));
            ASSERT_EQ(other.to_full(), values<T>(layout.size()));
            world.barrier();
          }
    });
  });
  EXPECT_EQ(files(), 1u);
}

TEST_F(Npy, AScalar) {
  comm::run_threads(2, [&](comm::Communicator& world) {
    const auto x = filled<double>(world, Layout::replicated({}, 2));
    write_npy(path("s.npy"), x);
    EXPECT_EQ(read_npy<double>(path("s.npy"), world, replicated_over(world)).to_full(), values<double>(1));
  });
}

TEST_F(Npy, WritesWhatNumPyWrites) {
  comm::run_threads(2, [&](comm::Communicator& world) {
    const auto x = filled<float>(world, Layout::split({2, 3}, 2, 1));
    write_npy(path("c.npy"), x);
    write_npy(path("f.npy"), x, Order::fortran);
    const auto y = filled<std::complex<double>>(world, Layout::split({3}, 2));
    write_npy(path("z.npy"), y);
  });
  const std::vector<float> v = values<float>(6);
  EXPECT_EQ(bytes("c.npy"), npy(dictionary("<f4", "(2, 3)"), bytes_of(v)));
  EXPECT_EQ(bytes("f.npy"), npy(dictionary("<f4", "(2, 3)", "True"),
                                bytes_of(std::vector<float>{v[0], v[3], v[1], v[4], v[2], v[5]})));
  EXPECT_EQ(bytes("z.npy"), npy(dictionary("<c16", "(3,)"), bytes_of(values<std::complex<double>>(3))));
}

TEST_F(Npy, ReadsEveryElementTypeAndByteOrder) {
  const std::vector<double> expected = {1, 2, 100};
  const auto both = [&]<class U>(const std::string& code, const std::vector<U>& elements) {
    write("little-" + code, npy(dictionary("<" + code, "(3,)"), bytes_of(elements)));
    write("big-" + code, npy(dictionary(">" + code, "(3,)"), bytes_of(elements, true), 2));
    comm::run_threads(2, [&](comm::Communicator& world) {
      for (const char* order : {"little-", "big-"}) {
        EXPECT_EQ(read_npy<double>(path(order + code), world, split_over(world)).to_full(), expected)
            << order << code;
        const auto z = read_npy<std::complex<float>>(path(order + code), world, split_over(world)).to_full();
        EXPECT_EQ(z[2], std::complex<float>(100)) << order << code;
      }
    });
  };
  both("f8", std::vector<double>{1, 2, 100});
  both("f4", std::vector<float>{1, 2, 100});
  both("f2", std::vector<std::uint16_t>{0x3c00, 0x4000, 0x5640});
  both("i8", std::vector<std::int64_t>{1, 2, 100});
  both("i4", std::vector<std::int32_t>{1, 2, 100});
  both("i2", std::vector<std::int16_t>{1, 2, 100});
  both("i1", std::vector<std::int8_t>{1, 2, 100});
  both("u8", std::vector<std::uint64_t>{1, 2, 100});
  both("u4", std::vector<std::uint32_t>{1, 2, 100});
  both("u2", std::vector<std::uint16_t>{1, 2, 100});
  both("u1", std::vector<std::uint8_t>{1, 2, 100});
  const std::string pair = bytes_of(std::vector<float>{3, -4}, true);
  write("complex", npy(dictionary(">c8", "(1,)"), pair));
  write("bool", npy("{\"shape\":(2L,),\"fortran_order\":True,\"descr\":'|b1'}", std::string("\1\0", 2), 3));
  comm::run_threads(3, [&](comm::Communicator& world) {
    using Complex = std::complex<double>;
    EXPECT_EQ(read_npy<Complex>(path("complex"), world, split_over(world)).to_full(),
              (std::vector<Complex>{Complex(3, -4)}));
    EXPECT_EQ(read_npy<float>(path("bool"), world, split_over(world)).to_full(), (std::vector<float>{1, 0}));
    expect_error(ErrorCode::invalid_argument, "holds complex64, which does not become float64",
                 [&] { read_npy<double>(path("complex"), world, split_over(world)); });
    expect_error(ErrorCode::invalid_argument, "of shape 2, but the layout is 3 split",
                 [&] { read_npy<double>(path("bool"), world, Layout::split({3}, 3)); });
  });
}

TEST_F(Npy, BadFilesAreNamedWithTheirField) {
  const std::string data(24, '\0'), good = npy(dictionary("<f8", "(3,)"), data);
  const auto refused = [&](const std::string& content, ErrorCode code, const std::string& part) {
    const std::string file = write("bad.npy", content);
    comm::run_threads(3, [&](comm::Communicator& world) {
      expect_error(code, part, [&] { read_npy<double>(file, world, split_over(world)); });
      expect_error(code, "bad.npy", [&] { read_npy<double>(file, world, split_over(world)); });
    });
  };
  const auto text = [&](const std::string& dictionary) { return npy(dictionary, data); };
  const ErrorCode format = ErrorCode::format, unsupported = ErrorCode::unsupported;
  refused("", format, "not a .npy file");
  refused("\x93NUMPX" + good.substr(6), format, "not a .npy file");
  refused(good.substr(0, 9), format, "not a .npy file");
  refused(good.substr(0, 60), format, "ends within the .npy header");
  refused(good.substr(0, good.size() - 1), format,
          "holds 23 bytes of data, but 'shape' 3 of float64 needs 24");
  refused(npy(dictionary("<f8", "(3,)"), data, 4), unsupported, "version 4.0");
  refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12) + data, format, "2147483647 bytes long");
  refused(text(dictionary("<f16", "(3,)")), unsupported, "'descr' is '<f16'");
  refused(text(dictionary("|f8", "(3,)")), unsupported, "'descr' is '|f8'");
  refused(text(dictionary("<U5", "(3,)")), unsupported, "'descr' is '<U5'");
  refused(text(dictionary(std::string("\0f8", 3), "(3,)")), unsupported, "'descr' is '");
  refused(text("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }"), unsupported,
          "structured");
  refused(text(dictionary("<f8", "(3)")), format, "a number, not a tuple");
  refused(text(dictionary("<f8", "(-3,)")), format, "bad 'shape'");
  refused(text(dictionary("<f8", "(3.5,)")), format, "has no ')'");
  refused(text(dictionary("<f8", "(99999999999999999999,)")), format, "bad 'shape'");
  refused(text(dictionary("<f8", "(4294967296, 4294967296)")), format, "'shape'");
  refused(text(dictionary("<f8", "(4611686018427387904,)")), format, "more bytes than a file");
  refused(text(dictionary("<f8", "(3,)", "Perhaps")), format, "neither True nor False");
  refused(text("{'descr': '<f8', 'shape': (3,), }"), format, "no 'fortran_order'");
  refused(text("{'descr': '<f8', 'descr': '<f8', 'shape': (3,), }"), format, "'descr' twice");
  refused(text("{'descr': '<f8', 'colour': 1}"), format, "unknown key 'colour'");
  refused(text("{'descr': '<f8"), format, "ends within a string");
  refused(text(dictionary("<f8", "(3,)") + " x"), format, "goes on after");
  refused(text("3"), format, "no '{'");
  comm::run_threads(2, [&](comm::Communicator& world) {
    expect_error(ErrorCode::io, "nothing.npy: cannot be opened",
                 [&] { read_npy<double>(path("nothing.npy"), world, split_over(world)); });
    expect_error(ErrorCode::io, "is a folder", [&] { read_npy<double>(path(""), world, split_over(world)); });
    expect_error(ErrorCode::io, "cannot be created", [&] {
      write_npy(path("no/such/folder.npy"), filled<double>(world, Layout::split({3}, 2)));
    });
  });
}

TEST_F(Npy, AFileThatCannotTakeItsNameLeavesNothing) {
  std::filesystem::create_directories(path("taken/inside"));
  comm::run_threads(2, [&](comm::Communicator& world) {
    expect_error(ErrorCode::io, "cannot take the place",
                 [&] { write_npy(path("taken"), filled<double>(world, Layout::split({3}, 2))); });
  });
  EXPECT_EQ(files(), 1u);
}

// The file is sparse: as many bytes that nobody has written, which rank 0 would have to hold as 16 each.
TEST_F(Npy, AnArrayThatDoesNotFitOnOneRankIsAnErrorOnAll) {
  constexpr Index n = Index{1} << 43;
  const std::string header = npy(dictionary("|u1", "(8796093022208,)"), "");
  std::error_code trouble;
  std::filesystem::resize_file(write("sparse.npy", header), header.size() + n, trouble);
  if (trouble) GTEST_SKIP() << "no file of 8 TiB here: " << trouble.message();
  comm::run_threads(2, [&](comm::Communicator& world) {
    expect_error(ErrorCode::out_of_memory, "PE 0", [&] {
      read_npy<std::complex<double>>(path("sparse.npy"), world, Layout::split_unevenly({n}, {n, 0}));
    });
  });
}

// The limit lets rank 0 create the file, and keeps rank 1 from opening it.
TEST_F(Npy, AFileThatNotAllRanksCanOpenLeavesNothing) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(STDERR_FILENO);
  ASSERT_GE(next, 0);
  ::close(next);
  comm::run_threads(2, [&](comm::Communicator& world) {
    const auto x = filled<double>(world, Layout::split({3}, 2));
    if (world.rank() == 0) {
      const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &one_more);
    }
    world.barrier();
    expect_error(ErrorCode::io, "cannot be opened", [&] { write_npy(path("x.npy"), x); });
    world.barrier();
    if (world.rank() == 0) setrlimit(RLIMIT_NOFILE, &before);
  });
  EXPECT_EQ(files(), 0u);
}

// Made by Python's zipfile: a.npy, deflated, the (6, 7) array of 0.5 i; b.npy, stored, '>i2' of 1, -2, 300.
constexpr unsigned char archive[] = {
    80,  75,  3,   4,   20,  0,   0,   0,   8,   0,   0,   0,   33,  0,   122, 41,  205, 89,  169, 0,   0,
    0,   208, 1,   0,   0,   5,   0,   0,   0,   97,  46,  110, 112, 121, 157, 200, 75,  11,  1,   81,  0,
    134, 225, 163, 44,  36,  11,  73,  146, 164, 227, 122, 92,  198, 93,  72,  202, 172, 236, 200, 198, 194,
    74,  147, 57,  147, 133, 208, 140, 108, 164, 252, 7,   127, 208, 79,  176, 180, 68,  243, 110, 108, 125,
    155, 167, 247, 187, 207, 151, 179, 197, 42,  32,  206, 226, 162, 108, 237, 109, 92,  53,  146, 106, 236,
    12,  149, 33,  149, 115, 112, 79,  174, 181, 95,  31,  92,  91,  127, 255, 169, 181, 243, 244, 231, 247,
    182, 214, 81,  127, 186, 220, 55,  228, 160, 98,  200, 171, 252, 123, 97,  241, 179, 199, 196, 247, 137,
    47,  20,  166, 79,  16,  67,  24,  193, 40,  198, 48,  142, 9,   76,  98,  10,  211, 152, 65,  137, 89,
    204, 97,  30,  11,  88,  196, 18,  42,  44,  99,  5,   171, 88,  67,  3,   235, 216, 192, 38,  182, 124,
    111, 40,  218, 52,  138, 14,  141, 162, 75,  163, 232, 209, 61,  243, 13,  80,  75,  3,   4,   20,  0,
    0,   0,   0,   0,   0,   0,   33,  0,   239, 74,  90,  27,  134, 0,   0,   0,   134, 0,   0,   0,   5,
    0,   0,   0,   98,  46,  110, 112, 121, 147, 78,  85,  77,  80,  89,  1,   0,   118, 0,   123, 39,  100,
    101, 115, 99,  114, 39,  58,  32,  39,  62,  105, 50,  39,  44,  32,  39,  102, 111, 114, 116, 114, 97,
    110, 95,  111, 114, 100, 101, 114, 39,  58,  32,  70,  97,  108, 115, 101, 44,  32,  39,  115, 104, 97,
    112, 101, 39,  58,  32,  40,  51,  44,  41,  44,  32,  125, 32,  32,  32,  32,  32,  32,  32,  32,  32,
    32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,
    32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,  32,
    32,  32,  32,  32,  32,  32,  32,  32,  32,  10,  0,   1,   255, 254, 1,   44,  80,  75,  1,   2,   20,
    3,   20,  0,   0,   0,   8,   0,   0,   0,   33,  0,   122, 41,  205, 89,  169, 0,   0,   0,   208, 1,
    0,   0,   5,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   128, 1,   0,   0,   0,   0,   97,
    46,  110, 112, 121, 80,  75,  1,   2,   20,  3,   20,  0,   0,   0,   0,   0,   0,   0,   33,  0,   239,
    74,  90,  27,  134, 0,   0,   0,   134, 0,   0,   0,   5,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   128, 1,   204, 0,   0,   0,   98,  46,  110, 112, 121, 80,  75,  5,   6,   0,   0,   0,   0,
    2,   0,   2,   0,   102, 0,   0,   0,   117, 1,   0,   0,   0,   0,
};
std::string archive_bytes() { return {reinterpret_cast<const char*>(archive), sizeof archive}; }

TEST_F(Npz, ReadsStoredAndDeflatedMembers) {
  const std::string file = write("a.npz", archive_bytes());
  on_ranks([&](comm::Communicator& world) {
    EXPECT_EQ(npz_names(file, world), (std::vector<std::string>{"a", "b"}));
    for (const int axis : {0, 1}) {
      const std::vector<double> a = read_npz<double>(file, "a", world, split_over(world, axis)).to_full();
      ASSERT_EQ(a.size(), 42u);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], 0.5 * static_cast<double>(i));
    }
    EXPECT_EQ(read_npz<float>(file, "b.npy", world, replicated_over(world)).to_full(),
              (std::vector<float>{1, -2, 300}));
    expect_error(ErrorCode::invalid_argument, "has no member 'c'; it has a, b",
                 [&] { read_npz<float>(file, "c", world, split_over(world)); });
  });
}

TEST_F(Npz, RoundTripsAndReplaces) {
  on_ranks([&](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const std::vector<Layout> all = testing::layouts({7, 5, 3}, world.size());
      NpzWriter writer(path("b.npz"), world);
      for (std::size_t i = 0; i < all.size(); ++i)
        writer.add("member" + std::to_string(i), filled<T>(world, all[i]),
                   i % 2 == 0 ? Order::c : Order::fortran);
      expect_error(ErrorCode::invalid_argument, "two members 'member0'",
                   [&] { writer.add("member0", filled<T>(world, all[0])); });
      writer.close();
      expect_error(ErrorCode::invalid_argument, "closed", [&] { writer.add("x", filled<T>(world, all[0])); });
      EXPECT_EQ(npz_names(path("b.npz"), world).size(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(read_npz<T>(path("b.npz"), "member" + std::to_string(i), world, all[0]).to_full(),
                  values<T>(105));
      world.barrier();
      { NpzWriter unfinished(path("c.npz"), world); }
      world.barrier();
    });
  });
  EXPECT_EQ(files(), 1u);
}

TEST_F(Npz, BadArchives) {
  const auto refused = [&](std::string content, const std::string& name, const std::string& part) {
    const std::string file = write("bad.npz", content);
    comm::run_threads(2, [&](comm::Communicator& world) {
      expect_error(ErrorCode::format, part, [&] { read_npz<double>(file, name, world, split_over(world)); });
    });
  };
  const std::string good = archive_bytes();
  const auto changed = [&](std::size_t at, char to) {
    std::string content = good;
    content[at] = to;
    return content;
  };
  const std::size_t stored_data = good.find("\x93NUMPY") + 128, directory = good.find("PK\1\2");
  refused("", "a", "no end record");
  refused(good.substr(0, good.size() - 23), "a", "no end record");
  refused(good.substr(100), "a", "lie beyond");
  refused(changed(stored_data, 7), "b", "member b.npy: the checksum of its data is");
  refused(changed(directory + 16, '\x55'), "a", "member a.npy: the checksum of its data is");
  refused(changed(60, '\x7f'), "a", "bad.npz");
  refused(changed(directory, 'Q'), "a", "entry 0 has no signature");
  refused(changed(0, 'Q'), "a", "no header before the data of a.npy");
  refused(changed(directory + 26, '\x7f'), "a", "'shape' 6×7 make 464");
  refused(changed(directory + 22, '\x7f'), "a", "lie beyond its end");
  refused(changed(good.size() - 10, '\x7f'), "a", "lie beyond its");
  // Whatever a single byte becomes, there is an answer or an error, and no crash.
  comm::run_threads(1, [&](comm::Communicator& world) {
    int errors = 0;
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const char bits : {'\x01', '\x80', '\xff'}) {
        const std::string file = write("bad.npz", changed(i, static_cast<char>(good[i] ^ bits)));
        for (const char* name : {"a", "b"}) try {
            (void)read_npz<double>(file, name, world, split_over(world)).to_full();
          } catch (const Error&) {
            ++errors;
          }
      }
    EXPECT_GT(errors, 1000);
  });
}

TEST_F(Npz, AModelThatNumPySaved) {
  const char* folder = std::getenv("SHOAL_TEST_DATA");
  const std::string file = std::string(folder ? folder : SHOAL_TEST_DATA) + "/poststack_model.npz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  on_ranks([&](comm::Communicator& world) {
    EXPECT_EQ(npz_names(file, world), (std::vector<std::string>{"x", "model", "z"}));
    const auto model = read_npz<double>(file, "model", world, split_over(world, 1));
    EXPECT_EQ(model.layout().shape(), (Shape{550, 800}));
    const auto x = read_npz<double>(file, "x", world, split_over(world));
    EXPECT_EQ(x.to_full()[1] - x.to_full()[0], 4);
    EXPECT_EQ(norm(x, norm_min), 800);
    EXPECT_EQ(model.to_full()[0], 1.85);
  });
}

TEST_F(Raw, RoundTripsBehindAnOffset) {
  on_ranks([&](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      for (const Layout& layout : testing::layouts({7, 5, 3}, world.size())) {
        write_raw(path("r.bin"), filled<T>(world, layout), 13);
        EXPECT_EQ(std::filesystem::file_size(path("r.bin")), 13 + 105 * sizeof(T));
        EXPECT_EQ(read_raw<T>(path("r.bin"), world, layout, 13).to_full(), values<T>(105));
        expect_error(ErrorCode::format, "at offset 14 take",
                     [&] { read_raw<T>(path("r.bin"), world, layout, 14); });
        world.barrier();
      }
    });
  });
  EXPECT_EQ(bytes("r.bin").substr(0, 13), std::string(13, '\0'));
}

}  // namespace
}  // namespace shoal::array
