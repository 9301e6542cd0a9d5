// SPDX-License-Identifier: Apache-2.0
// The boundary of a transport that is loaded at run time: a shared object transport_NAME.so with one
// C symbol. It is found beside the library (lib/shoal), or in the folder SHOAL_MODULE_PATH.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class LibraryCalls;

inline constexpr int module_abi = 2;  // grows with every change of Transport or Module

struct Module {
  int abi;
  const char* transport;     // "mpi"
  std::string (*library)();  // version of what it was loaded with; does not initialise it
  std::unique_ptr<Transport> (*create)(const JobOptions& options);  // joins the job
  /// See shoal/comm/library_calls.h.
  std::vector<std::unique_ptr<LibraryCalls>> (*library_calls)(Communicator& world, std::size_t operand_bytes);
};

inline constexpr const char* module_symbol = "shoal_transport_module";
extern "C" using ModuleEntry = const Module * ();

/// A module that exists in some installation of Shoal.
struct ModuleDescription {
  const char* file;          // "mpi_openmpi": transport_mpi_openmpi.so
  const char* transport;     // "mpi"
  const char* library;       // "Open MPI"
  const char* environment;   // launcher it belongs to, as in LaunchEnvironment
  const char* launchers[2];  // programs that start it, the first found is used
  const char* package;       // Debian packages that bring it
  bool unpackaged = false;   // nobody is told to install it, and `auto` does not choose it
};

inline constexpr ModuleDescription known_modules[] = {
    {"shmem_openmpi",
     "shmem",
     "OpenSHMEM of Open MPI",
     "Open MPI",
     {"oshrun", nullptr},
     "openmpi-bin libopenmpi3"},
    {"mpi_openmpi", "mpi", "Open MPI", "Open MPI", {"mpirun.openmpi", "mpirun"}, "openmpi-bin libopenmpi3"},
    {"mpi_mpich", "mpi", "MPICH", "MPICH", {"mpirun.mpich", "mpiexec.hydra"}, "mpich libmpich12"},
    {"shmem_sandia",
     "shmem",
     "Sandia OpenSHMEM",
     "MPICH",
     {"mpirun.mpich", "mpiexec.hydra"},
     "Sandia OpenSHMEM and mpich",
     true},
};

/// False for an unpackaged module that was not built.
bool is_offered(const ModuleDescription& description);

/// Loads a module. Returns null and says why in `reason` when it cannot be used here.
const Module* load_module(const ModuleDescription& description, std::string& reason);

/// Path of an executable on PATH, or "".
std::string find_program(const char* name);

}  // namespace shoal::comm
