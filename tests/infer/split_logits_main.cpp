// SPDX-License-Identifier: Apache-2.0
// split_logits TRANSPORT RANKS: the logits of a model that is split over a job are those of one PE, bit by
// bit, at every step, with the output on the first and on the last PE.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/base/thread_team.h"
#include "shoal/comm/job.h"
#include "shoal/infer/engine.h"
#include "shoal/infer/load.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/random_model.h"

using namespace shoal;
using namespace shoal::infer;

namespace {

constexpr int steps = 12;

// The bits of the logits after the prompt; then each sampled token is fed. Empty on PEs without the output.
std::vector<std::uint32_t> logits_bits(comm::Communicator& world, const ModelFile& file, const Plan& plan) {
  ThreadTeam team(1);
  const Weights weights = load_shard(world, file, plan, team, {});
  std::vector<std::uint32_t> bits;
  // serve() goes through all steps at once, so there is one engine for each number of steps.
  for (int fed = 1; fed <= steps; ++fed) {
    Engine engine(world, plan, weights, team, tensor::default_kernels(), {.temperature = 0});
    if (world.rank() == 0) {
      Token next = engine.feed(std::vector<Token>{1, 300, 270, 301, 299, 268, 265});
      for (int i = 1; i < fed; ++i) next = engine.feed({&next, 1});
      engine.stop();
    } else {
      engine.serve();
    }
    (void)engine.reports();
    const std::size_t begin = bits.size();
    bits.resize(begin + engine.last_logits().size());
    if (bits.size() > begin)
      std::memcpy(bits.data() + begin, engine.last_logits().data(), engine.last_logits().size_bytes());
    world.barrier();
  }
  return bits;
}

Plan plan_for(const ModelFile& file, int pes) {
  return make_plan(file, read_config(file), {.pes = pes, .context = 64, .chunk_tokens = 4});
}

void compare(comm::Communicator& world, const ModelFile& file, const std::vector<std::uint32_t>& expected) {
  const Plan plan = plan_for(file, world.size());
  const std::vector<std::uint32_t> actual = logits_bits(world, file, plan);
  if (world.rank() != plan.output_pe) return;
  if (actual.empty() || actual != expected)
    throw std::runtime_error(fmt::format("{} logits on {} PEs, and not those {} of one PE", actual.size(),
                                         world.size(), expected.size()));
}

}  // namespace

int main(int, char** argv) {
  const std::string transport = argv[1];
  const int ranks = std::atoi(argv[2]);
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("split_logits.{}", getpid());
  try {
    std::filesystem::create_directory(folder);
    std::vector<ModelFile> files;
    std::vector<std::vector<std::uint32_t>> expected;
    std::size_t symmetric_bytes = 0;
    for (const OutputMatrix output : {OutputMatrix::tied, OutputMatrix::own}) {
      RandomModelOptions options;
      options.layers = 5;
      options.output = output;
      files.push_back(ModelFile::open(write_random_model((folder / "model.gguf").string(), options)[0]));
      const Plan alone = plan_for(files.back(), 1);
      comm::run_threads(
          1, [&](comm::Communicator& world) { expected.push_back(logits_bits(world, files.back(), alone)); });
      std::filesystem::remove(files.back().path());
      // Engines one after the other need no more room than one; allowance for both models.
      symmetric_bytes += Engine::symmetric_bytes(plan_for(files.back(), ranks)) + load_symmetric_bytes(ranks);
    }
    std::filesystem::remove_all(folder);
    return comm::run({.transport = transport, .threads = ranks, .symmetric_bytes = symmetric_bytes},
                     [&](comm::Communicator& world) {
                       if (world.size() != ranks)
                         fail(ErrorCode::invalid_argument,
                              fmt::format("{} PEs instead of {}", world.size(), ranks));
                       for (std::size_t i = 0; i < files.size(); ++i) compare(world, files[i], expected[i]);
                       if (world.rank() == 0)
                         fmt::print("{} PEs, {}: {} and {} logits, the bits of one PE\n", world.size(),
                                    transport, expected[0].size(), expected[1].size());
                       return 0;
                     });
  } catch (const std::exception& error) {
    std::filesystem::remove_all(folder);
    fmt::print(stderr, "split_logits: {}\n", error.what());
    return 1;
  }
}
