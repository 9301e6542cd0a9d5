// SPDX-License-Identifier: Apache-2.0
// One collective of HostCollectives on its way: which steps it takes, and what is written and read in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "comm/host_collectives.h"
#include "comm/shared_copy.h"

namespace shoal::comm {

class HostTask {
 public:
  /// `operation` must live as long. The group has at least two members.
  HostTask(HostCollectives& host, const Operation& operation);
  ~HostTask();
  HostTask(const HostTask&) = delete;
  HostTask& operator=(const HostTask&) = delete;

  /// Goes as far as it can without waiting; true when it is done.
  bool advance();
  /// The members that it waits for.
  std::vector<Rank> silent() const;

 private:
  enum class Shape : std::uint8_t {
    signal,          // nothing is moved
    from_root,       // the root writes, the others read it all
    one_shot,        // all write all; whoever has a result combines it
    by_parts,        // even steps: all write all, each combines its part; odd steps: the parts are collected
                     // (lent: each reads what it combines, and writes the result to who wants it)
    scatter_reduce,  // all write a chunk of every part, each combines its own
    gather,          // all write; the root or all read
    scatter,         // the root writes a chunk of every part, each reads its own
    all_to_all,      // all write a chunk for each, each reads its own
  };
  struct Members {
    Rank begin;
    Rank end;
  };
  struct Piece {  // in elements
    std::int64_t begin;
    std::int64_t count;
  };

  void plan();
  void plan_chunks(std::int64_t count, int parts);
  void plan_reduction();
  void plan_all_to_all();
  bool plan_lending(std::int64_t count);
  std::int64_t largest(std::span<const std::int64_t> counts, Rank but) const;

  bool writes() const;
  Members awaited() const;
  bool reads() const;
  void write(std::uint64_t step);
  bool read(std::uint64_t step);  // false: some of it has not come yet
  void read_places(std::uint64_t step);
  void copy_own();

  void write_all_but_my_part(std::uint64_t step);
  void combine_my_part(std::uint64_t step);
  void collect_parts(std::uint64_t step);
  void combine_all(std::uint64_t step);
  void write_chunks_of_parts(std::uint64_t step);
  void combine_scatter_reduce(std::uint64_t step);
  void read_gather(std::uint64_t step);
  void write_address(std::uint64_t step);
  std::uint64_t address(Rank member, std::uint64_t step, bool of_output = false) const;
  void check_sizes(std::uint64_t step) const;
  bool read_lent(std::uint64_t step);
  void combine_lent(std::uint64_t step, Piece part, std::int64_t to);
  void give(std::uint64_t step, const std::byte* result, std::int64_t at, std::int64_t count);
  void begin_moving(std::uint64_t step);
  bool move_lent(std::uint64_t step);
  void help();
  void help(Rank reader, Rank line_of, const std::byte* from, std::int64_t count);
  CopyLine& copy_line(Rank member) const;
  void read_from(Rank member, std::int64_t at, std::uint64_t address, std::int64_t count);
  void write_all_to_all(std::uint64_t step);
  void read_all_to_all(std::uint64_t step);

  // Combines members [begin, end), of which this one's data lie at `own`, the others' at `at` in their place.
  void combine(Rank begin, Rank end, const void* own, std::int64_t at, std::uint64_t step, void* to,
               std::int64_t count);

  bool rooted() const { return op_.pattern == Pattern::reduce || op_.pattern == Pattern::gather; }
  bool is_root() const { return op_.peer == me_; }
  bool is_lent(std::int64_t count) const;
  // Whether only the root's memory is read, or only the root reads: then one side of each copy would wait.
  bool has_idle_side() const {
    return shape_ == Shape::from_root || shape_ == Shape::scatter || (shape_ == Shape::gather && rooted());
  }
  bool closing() const { return lent_ && at_ + 1 == steps_; }
  std::byte* place(Rank member, std::uint64_t step) const;
  std::int64_t round() const { return shape_ == Shape::by_parts ? at_ / 2 : at_; }
  bool collecting() const { return shape_ == Shape::by_parts && at_ % 2 == 1; }
  Piece piece(std::int64_t count) const;
  Piece part_of(std::int64_t count, Rank member) const;
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * element_; }
  std::byte* in(std::int64_t at) const { return static_cast<std::byte*>(op_.send.data) + bytes(at); }
  std::byte* out(std::int64_t at) const { return static_cast<std::byte*>(op_.recv.data) + bytes(at); }

  HostCollectives& host_;
  const Operation& op_;
  const Rank me_;
  const Rank size_;
  std::size_t element_ = 1;  // bytes
  std::int64_t chunk_ = 0;   // elements that a round moves at most: of all, or of each part
  std::int64_t steps_ = 1;
  std::int64_t at_ = 0;  // step of this operation
  std::uint16_t mark_ = 0;
  Shape shape_ = Shape::signal;
  bool inline_ = false;  // data lies in the lines of the step numbers
  bool lent_ = false;    // the first step tells addresses, the last one that all has been read
  bool published_ = false;
  bool moving_ = false;
  std::list<SharedReading> readings_;  // of lent data, from several members where this one is the root
  Rank next_ = 0;                      // members before it have been seen at the step that is waited for
};

}  // namespace shoal::comm
