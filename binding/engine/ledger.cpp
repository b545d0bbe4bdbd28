#include "binding/engine/ledger.h"

#include <thread>
#include <unordered_map>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/base/env.h"
#include "core/base/error.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// The native ledger under the interface of the Python one, for the tests that compare them.
class LedgerFace {
 public:
  LedgerFace(std::int64_t quota_bytes, bool may_spill)
      : ledger_(make_ledger(quota_bytes, may_spill)) {}
  std::vector<std::uint64_t> make_room(std::int64_t bytes) {
    return keys(ledger_->make_room(bytes));
  }
  std::vector<std::uint64_t> cold() { return keys(ledger_->cold()); }
  void add(std::uint64_t key, std::int64_t bytes) {
    Entry& entry = *entries_.emplace(key, std::make_unique<Entry>()).first->second;
    static_cast<LedgerEntry&>(entry) = {bytes};
    entry.key = key;
    ledger_->add(entry);
  }
  void use(std::uint64_t key) { ledger_->use(of(key)); }
  void pin(std::uint64_t key) { ledger_->pin(of(key)); }
  void unpin(std::uint64_t key) { ledger_->unpin(of(key)); }
  void spill(std::uint64_t key) { ledger_->spill(of(key)); }
  void restore(std::uint64_t key) { ledger_->restore(of(key)); }
  void remove(std::uint64_t key) {
    ledger_->remove(of(key));
    entries_.erase(key);
  }
  void reset_peaks() { ledger_->reset_peaks(); }
  Annotated<"dict[str, int]"> figures() const { return ledger_dictionary(ledger_->figures()); }

 private:
  struct Entry : LedgerEntry {
    std::uint64_t key;
  };
  LedgerEntry& of(std::uint64_t key) { return *entries_.at(key); }
  static std::vector<std::uint64_t> keys(const std::vector<LedgerEntry*>& blocks) {
    std::vector<std::uint64_t> out;
    for (const LedgerEntry* block : blocks) out.push_back(static_cast<const Entry*>(block)->key);
    return out;
  }
  const std::unique_ptr<Ledger> ledger_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> entries_;
};

// A ledger written in Python; a block's key there is the address of its entry.
class PythonLedger final : public Ledger {
 public:
  explicit PythonLedger(nb::object ledger) : ledger_(std::move(ledger)) {}
  ~PythonLedger() override {
    nb::gil_scoped_acquire lock;
    ledger_.reset();
  }
  std::vector<LedgerEntry*> make_room(std::int64_t bytes) override {
    nb::gil_scoped_acquire lock;
    try {
      return blocks(ledger_.attr("make_room")(bytes));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_MemoryError)) throw;
      fail(ErrorKind::memory, nb::str(error.value()).c_str());
    }
  }
  std::vector<LedgerEntry*> cold() override {
    nb::gil_scoped_acquire lock;
    return blocks(ledger_.attr("cold")());
  }
  void add(LedgerEntry& block) override { call("add", block, block.bytes); }
  void use(LedgerEntry& block) override { call("use", block); }
  void pin(LedgerEntry& block) override {
    ++block.pins;
    call("pin", block);
  }
  void unpin(LedgerEntry& block) override {
    --block.pins;
    call("unpin", block);
  }
  void spill(LedgerEntry& block) override { call("spill", block); }
  void restore(LedgerEntry& block) override { call("restore", block); }
  void remove(LedgerEntry& block) override { call("remove", block); }
  LedgerFigures figures() const override {
    nb::gil_scoped_acquire lock;
    const nb::object f = ledger_.attr("figures")();
    const auto get = [&](const char* name) { return nb::cast<std::int64_t>(f[name]); };
    return {get("live_bytes"),         get("peak_live_bytes"), get("spilled_bytes"),
            get("peak_spilled_bytes"), get("pinned_bytes"),    get("allocations"),
            get("releases"),           get("spills"),          get("restores")};
  }
  void reset_peaks() override {
    nb::gil_scoped_acquire lock;
    ledger_.attr("reset_peaks")();
  }
  bool gives_way() override {
    if (PyGILState_Check()) {
      nb::gil_scoped_release others;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  static std::uint64_t key_of(const LedgerEntry& block) {
    return reinterpret_cast<std::uint64_t>(&block);
  }
  static std::vector<LedgerEntry*> blocks(const nb::object& keys) {
    std::vector<LedgerEntry*> out;
    for (nb::handle key : keys)
      out.push_back(reinterpret_cast<LedgerEntry*>(nb::cast<std::uint64_t>(key)));
    return out;
  }
  template <class... Arguments>
  void call(const char* name, const LedgerEntry& block, Arguments... arguments) {
    nb::gil_scoped_acquire lock;
    ledger_.attr(name)(key_of(block), arguments...);
  }
  nb::object ledger_;
};

}  // namespace

nb::dict ledger_dictionary(const LedgerFigures& figures) {
  nb::dict out;
  out["live_bytes"] = figures.live_bytes;
  out["peak_live_bytes"] = figures.peak_live_bytes;
  out["spilled_bytes"] = figures.spilled_bytes;
  out["peak_spilled_bytes"] = figures.peak_spilled_bytes;
  out["pinned_bytes"] = figures.pinned_bytes;
  out["allocations"] = figures.allocations;
  out["releases"] = figures.releases;
  out["spills"] = figures.spills;
  out["restores"] = figures.restores;
  return out;
}

std::unique_ptr<Ledger> choose_ledger(std::int64_t quota_bytes, bool may_spill) {
  if (env_integer("NATIVE_RUNTIME", 1)) return make_ledger(quota_bytes, may_spill);
  const nb::object type = nb::module_::import_("tilewright.memory.reference").attr("Ledger");
  return std::make_unique<PythonLedger>(type(quota_bytes, may_spill));
}

void bind_ledger(nb::module_& m) {
  nb::class_<LedgerFace>(m, "_Ledger", "The native ledger, as tilewright.memory.reference.")
      .def(nb::init<std::int64_t, bool>(), "quota_bytes"_a, "may_spill"_a)
      .def("make_room", &LedgerFace::make_room)
      .def("cold", &LedgerFace::cold)
      .def("add", &LedgerFace::add)
      .def("use", &LedgerFace::use)
      .def("pin", &LedgerFace::pin)
      .def("unpin", &LedgerFace::unpin)
      .def("spill", &LedgerFace::spill)
      .def("restore", &LedgerFace::restore)
      .def("remove", &LedgerFace::remove)
      .def("reset_peaks", &LedgerFace::reset_peaks)
      .def("figures", &LedgerFace::figures);
}

}  // namespace tw::binding
