// SPDX-License-Identifier: Apache-2.0
// Who is there, and who owns what.
//
// A job is a number of ranks that all run this program. Each owns a part of every array, works on that part,
// and meets the others in collective calls, which all of them make. What ranks are is said when the program
// is started, not here:
//
//   ./01_hello_ranks --ranks 4                       four threads of this process
//   mpirun -n 4 ./01_hello_ranks                     four processes; or: oshrun -n 4 ./01_hello_ranks
//   mpirun -n 64 --hostfile hosts ./01_hello_ranks   on a cluster, or: srun -n 64 ./01_hello_ranks
//   SHOAL_TRANSPORT=mpi mpirun -n 4 ./01_hello_ranks by messages of MPI, where Shoal would choose OpenSHMEM
//
// Picture: who owns each element of a 60 x 60 array. Left: slabs along axis 0; middle: along axis 1; right:
// blocks. One colour a rank.
#include <cmath>

#include "picture.h"
#include "shoal/array/distributed_array.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Layout;
using examples::say;

// Every rank writes its number into its own elements; the whole is gathered on rank 0 for the picture.
examples::Image owners(const comm::Communicator& world, const Layout& layout, const std::string& title) {
  DistributedArray<double> x(world, layout);
  x.fill(world.rank());
  return {.rows = 60,
          .columns = 60,
          .values = x.to_full_on(0),
          .colours = examples::Colours::ranks,
          .title = title,
          .down = {"axis 0", 0, 59},
          .right = {"axis 1", 0, 59}};
}

// As near to a square grid as `ranks` has factors for.
std::vector<int> grid_of(int ranks) {
  int rows = static_cast<int>(std::sqrt(ranks));
  while (ranks % rows != 0) --rows;
  return {rows, ranks / rows};
}

void hello(comm::Communicator& world, const examples::Arguments& arguments) {
  // A layout is a plain value that every rank holds whole: nobody has to ask what others own.
  const int ranks = world.size();
  const Layout layout = Layout::split({10}, ranks);
  for (int rank = 0; rank < ranks; ++rank)
    say(world, "rank {} on {} owns {} of 10 elements, from {} on", rank, world.host(rank),
        layout.local_size(rank), layout.block(rank).begin[0]);

  // An array is a layout and this rank's elements. Indexing is local: x[0] is this rank's first element.
  DistributedArray<double> x(world, layout);
  const array::Index first = layout.block(world.rank()).begin[0];
  for (std::size_t i = 0; i < x.local().size(); ++i)
    x[i] = static_cast<double>(first) + static_cast<double>(i);

  // Algebra is local. Sums over all elements are collective, and give every rank the same bits.
  const DistributedArray<double> y = 2.0 * x + 1.0;
  const double product = dot(x, y);  // sum of i (2 i + 1), i = 0 .. 9
  say(world, "x = 0 .. 9, y = 2 x + 1: x . y = {}, largest y = {}", product, norm(y, array::norm_max));
  examples::expect(product == 615 && norm(y, array::norm_max) == 19, "x . y = 615 and largest y = 19");

  const std::vector<examples::Panel> panels{
      owners(world, Layout::split({60, 60}, ranks, 0), "split along axis 0"),
      owners(world, Layout::split({60, 60}, ranks, 1), "split along axis 1"),
      owners(world, Layout::blocks({60, 60}, grid_of(ranks)), "blocks")};
  if (world.rank() == 0) examples::write_picture(arguments.output, panels);
}

int main(int argc, char** argv) { return examples::start(argc, argv, hello); }
