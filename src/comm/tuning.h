// SPDX-License-Identifier: Apache-2.0
// The numbers that algorithms within a host are chosen by. All ranks of a group compute the same choice from
// them, so they are constants, or agreed when the group is opened. `shoal bench comm` with SHOAL_TUNING
// measures them (docs/benchmarks.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::comm::tuning {

inline constexpr std::size_t cache_line = 64;

/// Ranks of a host share memory in slots, one for each group that is open at a time. Groups beyond that use
/// messages. The first slot is for the group of all ranks.
inline constexpr int host_slots = 64;
/// Bytes of a half of a slot's data: 10 MiB a rank in all, of which pages that are never used take no memory.
inline constexpr std::size_t first_half_bytes = std::size_t{1} << 20;
inline constexpr std::size_t other_half_bytes = std::size_t{64} << 10;

/// Data is moved in chunks, which stay in the second-level cache and let readers overlap with writers. Each
/// costs a synchronisation. All-reduce of 256 KiB and of 1 MiB between two cores, us: chunks of 16 KiB 65 and
/// 276, of 32 KiB 61 and 251, of 64 KiB 42 and 213, of 128 KiB 41 and 227, of 256 KiB 46 and 221 (MPI: 61 and
/// 280).
inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
/// Where ranks take turns on the cores, a synchronisation is several us: as few chunks as there is room for.
inline constexpr std::size_t crowded_chunk_bytes = first_half_bytes;

/// An all-reduce of up to this many bytes is combined whole by every rank, after one synchronisation; a
/// larger one in parts, one a rank, that are then gathered. Two ranks gain nothing by parts: the same lines
/// cross between the cores. With four ranks on two cores 4 KiB take 7.1 us whole, 16 KiB 14.0 us in parts
/// (MPI: 19 and 46).
inline constexpr std::size_t one_shot_bytes = std::size_t{8} << 10;

/// Looks at the others' words before a wait goes on to pauses, which last longer than a small operation. With
/// more ranks than cores each look follows a yield: a barrier of four ranks on two cores takes 1.8 us so,
/// and 2.7 us without.
inline constexpr int polls = 64;
/// The same where a message between hosts, which takes longer than a yield, is on its way as well.
inline constexpr int polls_of_several_hosts = 4;
/// Looks at messages of the library before a wait looks at everything else as well.
inline constexpr int patient_polls = 256;

/// Messages of a pair of ranks pass through a ring of slots, which stays in the second-level cache. The
/// receiver reads one slot while the sender writes the next, so a message of 4 KiB or more wants small ones;
/// each costs a header. One way at 4, 64, 1024 KiB between two cores, us: slots of 2 KiB 1.1, 10.1, 159; of 4
/// KiB 1.4, 8.1, 116; of 8 KiB 1.4, 7.9, 128; of 16 KiB 1.6, 9.4, 110 (MPI in the same runs: 2.7, 13, 135).
/// The odd cache line keeps the headers from falling into one set of the cache.
inline constexpr int mailbox_slots = 32;
inline constexpr std::size_t mailbox_slot_bytes = (std::size_t{4} << 10) + cache_line;

/// Of messages up to so many bytes the receiver reads the first half while the sender writes the second.
inline constexpr std::size_t short_message_bytes = std::size_t{8} << 10;
inline constexpr std::size_t short_fragment_bytes = std::size_t{2} << 10;

/// Larger data is not copied into shared memory: who wants it reads it where it is (PeerMemory). By
/// process_vm_readv between two cores, us, and in two copies: messages of 16, 64, 1024 KiB 1.7, 4.2, 119 and
/// 2.9, 7.1, 110; gather 2.5, 7.5, 146 and 3.2, 10.7, 141; reduce_scatter of 32, 64, 1024 KiB 3.7, 5.9, 61
/// and 4.3, 8.2, 103. These are of data that stays as it is. Where the sender rewrites it and the receiver
/// reads it each time, two copies are as fast up to some 256 KiB: messages of 16, 64, 256, 1024 KiB with both
/// take 6.1, 19, 56, 320 by one copy, 6.3, 15, 47, 221 shared by both sides, 3.8, 12, 46, 252 in two copies.
inline constexpr std::size_t lent_message_bytes = std::size_t{16} << 10;
inline constexpr std::size_t lent_bytes = std::size_t{16} << 10;  // of a rank's part of a collective
/// Where ranks take turns on the cores a synchronisation more costs more than a copy: all_gather among four
/// ranks on two cores takes 68 us at 64 KiB, 51 in two copies, but 970 and 1270 at 1 MiB.
inline constexpr std::size_t crowded_lent_bytes = std::size_t{256} << 10;
/// Broadcast of two ranks takes 7.7 and 82 us at 64 and 1024 KiB lent, the root writing half of it, and 11.5
/// and 99 in chunks.
inline constexpr std::size_t lent_broadcast_bytes = std::size_t{32} << 10;
/// Reduce and all-reduce, each rank reading one part of all inputs and writing its sum to the others.
/// All-reduce of two ranks takes 3.2, 4.5, 6.4, 120 us at 16, 32, 64, 1024 KiB, and 3.7, 7.5, 11.7, 200 in
/// two copies; of four ranks on two cores at 1024 KiB 610 to 690, and 630 to 780.
inline constexpr std::size_t lent_reduce_bytes = std::size_t{16} << 10;
/// A reduce of two ranks is read and combined by the root alone below: at 16, 64, 1024 KiB in 2.5, 6.6, 200
/// us, in parts in 3.2, 6.3, 94.
inline constexpr std::size_t parts_reduce_bytes = std::size_t{64} << 10;
/// A reduction reads from a member so much at a time, which is still in the cache when it is combined.
inline constexpr std::size_t lent_piece_bytes = std::size_t{64} << 10;
/// Where one side of a copy would wait, both copy: in pieces of at least this many bytes. Messages of 64 and
/// 1024 KiB take 3.3 and 53 us so, and 4.3 and 81 by the receiver alone; gather with pieces of 16 KiB 7.5
/// instead of 5.4 at 64 KiB.
inline constexpr std::size_t shared_piece_bytes = std::size_t{32} << 10;
/// A scatter of fewer pieces is read by the receiver alone: 4.5 us at 64 KiB, and 6.3 shared.
inline constexpr std::uint64_t scatter_pieces = 4;
/// Looks at a lent message that came before its receive, until it is taken all the same: some 0.3 ms.
inline constexpr int patient_looks = 1000;

}  // namespace shoal::comm::tuning
