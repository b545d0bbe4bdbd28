// Collects the tables that build_isa.cpp compiled and picks the set in use.
#include "core/cpu/isa/isa.h"

#include <atomic>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/runtime/registry.h"

// A library that links few families has this weak: the tables of the others are null there.
#ifndef TW_TABLE_LINKAGE
#define TW_TABLE_LINKAGE
#endif

// CMake defines TW_BUILT_<name> for the rows of instruction_sets.inc that this build compiled.
#if TW_BUILT_scalar
#define TW_ISA_NAME scalar
#include "core/cpu/isa/isa_tables.inc"
#undef TW_ISA_NAME
#endif
#if TW_BUILT_neon
#define TW_ISA_NAME neon
#include "core/cpu/isa/isa_tables.inc"
#undef TW_ISA_NAME
#endif
#if TW_BUILT_avx2
#define TW_ISA_NAME avx2
#include "core/cpu/isa/isa_tables.inc"
#undef TW_ISA_NAME
#endif
#if TW_BUILT_avx512
#define TW_ISA_NAME avx512
#include "core/cpu/isa/isa_tables.inc"
#undef TW_ISA_NAME
#endif

namespace tw {

namespace {

// Never moved: records point at tables.
struct Built {
  bool present[kIsas] = {};
  IsaKernels kernels[kIsas] = {};
  ActiveIsa records[kIsas] = {};

  Built() {
#if TW_BUILT_scalar
    add(Isa::scalar, scalar::all_kernels());
#endif
#if TW_BUILT_neon
    add(Isa::neon, neon::all_kernels());
#endif
#if TW_BUILT_avx2
    add(Isa::avx2, avx2::all_kernels());
#endif
#if TW_BUILT_avx512
    add(Isa::avx512, avx512::all_kernels());
#endif
  }
  void add(Isa isa, const IsaKernels& table) {
    present[static_cast<int>(isa)] = cpu_supports(isa);
    kernels[static_cast<int>(isa)] = table;
    records[static_cast<int>(isa)] = {isa, &kernels[static_cast<int>(isa)]};
  }
};

const Built& built() {
  static const Built instance;
  return instance;
}

Isa initial_isa() {
  const std::string wanted = env_text("ISA");
  Isa best = Isa::scalar;
  for (int i = 0; i < kIsas; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (built().present[i]) best = isa;
    if (wanted == name_of(isa)) {
      if (!built().present[i])
        fail(ErrorKind::value, "TILEWRIGHT_ISA: this machine or build has no '", wanted, "'");
      return isa;
    }
  }
  if (!wanted.empty()) {
    std::string names = name_of(static_cast<Isa>(0));
    for (int i = 1; i < kIsas; ++i) names += std::string(", ") + name_of(static_cast<Isa>(i));
    fail(ErrorKind::value, "TILEWRIGHT_ISA: unknown instruction set '", wanted, "'; choose from ",
         names);
  }
  return best;
}

}  // namespace

std::atomic<const ActiveIsa*> known_default_isa{nullptr};

const IsaKernels* kernels_of(Isa isa) {
  const int i = static_cast<int>(isa);
  return built().present[i] ? &built().kernels[i] : nullptr;
}

const ActiveIsa* find_isa(Isa isa) {
  const int i = static_cast<int>(isa);
  if (!built().present[i])
    fail(ErrorKind::value, "this machine or build has no '", name_of(isa), "' kernels");
  return &built().records[i];
}

const ActiveIsa& find_default_isa() {
  const ActiveIsa* known = nullptr;
  const ActiveIsa* const initial = find_isa(initial_isa());
  return known_default_isa.compare_exchange_strong(known, initial) ? *initial : *known;
}

void set_isa(Isa isa) {
  Choice choice = current_choice();
  choice.isa = find_isa(isa);
  set_choice(choice);
}

void set_default_isa(Isa isa) {
  known_default_isa.store(find_isa(isa), std::memory_order_release);
  forget_choices();
}

}  // namespace tw
