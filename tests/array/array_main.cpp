// SPDX-License-Identifier: Apache-2.0
// array_main TRANSPORT RANKS: the core of the array tests on a transport with processes. The full list runs
// on threads.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "array/support.h"
#include "shoal/array/ghost_cells.h"
#include "shoal/array/io.h"
#include "shoal/array/redistribution.h"

using namespace shoal;
using namespace shoal::array;

namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

template <class T>
void check_type(comm::Communicator& world, const std::string& file) {
  const std::vector<Layout> layouts = array::testing::layouts({7, 5, 9}, world.size());
  const std::vector<T> full = array::testing::values<T>(315);
  double squares = 0;
  for (const T& v : full) squares += static_cast<double>(std::norm(v));
  for (const Layout& from : layouts) {
    const auto x = array::testing::filled<T>(world, from);
    expect(x.to_full() == full, "to_full of " + from.describe());
    expect(dot(x, x) == T(static_cast<Real<T>>(squares)), "dot of " + from.describe());
    const DistributedArray<T> y = T(3) * x - x;
    expect(norm(y, norm_max) == 2 * norm(x, norm_max), "norm of " + from.describe());
    for (const Layout& to : layouts)
      expect(redistribute(x, to).to_full() == full, from.describe() + " to " + to.describe());
    expect(ravel(x).to_full() == full, "ravel of " + from.describe());

    GhostPlanes<T> planes(world, from, 0, 1, 0, Boundary::periodic);
    planes.start(x);
    planes.finish();
    auto back = zeros_like(x);
    planes.add_back(planes.before(), planes.after(), back);
    // Each part's last plane has been sent on, and comes back from the next part that asks for it.
    double sent = 0;
    for (const T& v : planes.before()) sent += static_cast<double>(std::norm(v));
    if (!from.is_replicated()) sent = world.all_reduce(sent, comm::Reduction::sum);
    expect(std::real(dot(x, back)) == static_cast<Real<T>>(sent), "ghost planes of " + from.describe());

    write_npy(file, x);
    expect(read_npy<T>(file, world, from).to_full() == full, "file of " + from.describe());
  }
}

int body(comm::Communicator& world) {
  // One name for all ranks, and another for each job.
  std::int64_t number[1] = {world.rank() == 0 ? static_cast<std::int64_t>(::getpid()) : 0};
  world.broadcast(std::span(number), 0);
  const std::string file =
      std::filesystem::temp_directory_path() / fmt::format("shoal-array-{}.npy", number[0]);
  array::testing::for_each_type([&]<class T>() { check_type<T>(world, file); });
  if (world.rank() == 0) {
    std::filesystem::remove(file);
    fmt::print("arrays: all as expected on {} ranks\n", world.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return comm::run({.transport = argv[1], .threads = std::atoi(argv[2])}, [&](comm::Communicator& world) {
      expect(world.size() == std::atoi(argv[2]), "another number of ranks");
      return body(world);
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "array_main: {}\n", error.what());
    return 1;
  }
}
