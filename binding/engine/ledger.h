// The books of a pool: the native ones, or those in pure Python where the environment asks for
// them.
#pragma once
#include <memory>

#include "binding/tensor/casters.h"
#include "core/memory/ledger.h"

namespace tw::binding {

std::unique_ptr<Ledger> choose_ledger(std::int64_t quota_bytes, bool may_spill);
nb::dict ledger_dictionary(const LedgerFigures& figures);

}  // namespace tw::binding
