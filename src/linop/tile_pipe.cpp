// SPDX-License-Identifier: Apache-2.0
#include "linop/tile_pipe.h"

#include <complex>

#include "shoal/base/error.h"

namespace shoal::linop {

template <class C>
TilePipe<C>::TilePipe(const comm::Communicator& communicator,
                      std::unique_ptr<comm::SymmetricSegments<C>> segments, Index slot)
    : me_(communicator.rank()), segments_(std::move(segments)), slot_(static_cast<std::size_t>(slot)) {
  for (int i = 1; i < communicator.size(); ++i) peers_.push_back((me_ + i) % communicator.size());
}

template <class C>
std::shared_ptr<TilePipe<C>> TilePipe<C>::make(const comm::Communicator& communicator, Index slot) {
  std::unique_ptr<comm::SymmetricSegments<C>> segments;
  try {
    segments =
        std::make_unique<comm::SymmetricSegments<C>>(communicator, slots * static_cast<std::size_t>(slot));
  } catch (const Error& error) {  // on all ranks alike
    if (error.code() != ErrorCode::out_of_memory) throw;
    return nullptr;
  }
  bool reached = true;
  for (Rank peer = 0; peer < communicator.size(); ++peer)
    reached = reached && (peer == communicator.rank() || !segments->direct(peer).empty());
  comm::Communicator group = communicator;
  if (group.all_reduce(reached ? 1 : 0, comm::Reduction::min) == 0) return nullptr;
  return std::shared_ptr<TilePipe>(new TilePipe(communicator, std::move(segments), slot));
}

template class TilePipe<std::complex<float>>;
template class TilePipe<std::complex<double>>;

}  // namespace shoal::linop
