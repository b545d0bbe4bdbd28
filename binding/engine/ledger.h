// The books of a pool: the native ones, which are compared with those in pure Python where the
// environment asks for it.
#pragma once
#include <functional>
#include <memory>

#include "binding/tensor/casters.h"
#include "core/memory/ledger.h"

namespace tw::binding {

struct ChosenLedger {
  std::unique_ptr<Ledger> ledger;
  // Raises RuntimeError where the two differed. Does nothing where there is one.
  std::function<void()> compare;
};
ChosenLedger choose_ledger(std::int64_t quota_bytes, bool may_spill);
nb::dict ledger_dictionary(const LedgerFigures& figures);

}  // namespace tw::binding
