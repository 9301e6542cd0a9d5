// SPDX-License-Identifier: Apache-2.0
#include "linop/slab_memory.h"

#include <complex>

#include "shoal/base/error.h"

namespace shoal::linop {

template <class C>
SlabMemory<C>::SlabMemory(const comm::Communicator& communicator,
                          std::unique_ptr<comm::SymmetricSegments<C>> segments)
    : me_(communicator.rank()), segments_(std::move(segments)) {
  for (Rank peer = 0; peer < communicator.size(); ++peer) {
    here_.push_back(segments_->from(peer).data());
    there_.push_back(peer == me_ ? here_.back() : segments_->direct(peer).data());
  }
}

template <class C>
std::shared_ptr<SlabMemory<C>> SlabMemory<C>::make(const comm::Communicator& communicator, Index largest) {
  std::unique_ptr<comm::SymmetricSegments<C>> segments;
  try {
    segments = std::make_unique<comm::SymmetricSegments<C>>(communicator, static_cast<std::size_t>(largest));
  } catch (const Error& error) {  // on all ranks alike
    if (error.code() != ErrorCode::out_of_memory) throw;
    return nullptr;
  }
  bool reached = true;
  for (Rank peer = 0; peer < communicator.size(); ++peer)
    reached = reached && (largest == 0 || peer == communicator.rank() || !segments->direct(peer).empty());
  comm::Communicator group = communicator;
  if (group.all_reduce(reached ? 1 : 0, comm::Reduction::min) == 0) return nullptr;
  return std::shared_ptr<SlabMemory>(new SlabMemory(communicator, std::move(segments)));
}

template <class C>
void SlabMemory<C>::meet() {
  const Rank ranks = static_cast<Rank>(here_.size());
  ++sequence_;
  for (Rank i = 1; i < ranks; ++i) segments_->signal((me_ + i) % ranks, sequence_);
  for (Rank i = 1; i < ranks; ++i) segments_->wait((me_ + i) % ranks, sequence_);
}

template class SlabMemory<std::complex<float>>;
template class SlabMemory<std::complex<double>>;

}  // namespace shoal::linop
