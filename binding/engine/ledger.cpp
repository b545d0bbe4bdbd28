#include "binding/engine/ledger.h"

#include <mutex>
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
    static_cast<LedgerEntry&>(entry) = {bytes, 0, Residence::resident};
    entry.key = key;
    ledger_->add(entry);
  }
  void use(std::uint64_t key) { ledger_->use(of(key)); }
  void pin(std::uint64_t key) { ledger_->pin(of(key)); }
  void unpin(std::uint64_t key) { ledger_->unpin(of(key)); }
  void spill(std::uint64_t key) {
    ledger_->spill(of(key));
    of(key).residence = Residence::away;
  }
  void restore(std::uint64_t key) {
    ledger_->restore(of(key));
    of(key).residence = Residence::resident;
  }
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

// The native ledger beside the one in Python. It is called under the lock of its pool, where Python
// cannot be: so it decides, and notes what it was told and what it said. `compare` tells the other
// the same, which must say the same. A block's key there is the address of its entry.
class ComparedLedger final : public Ledger {
 public:
  ComparedLedger(nb::object reference, std::int64_t quota_bytes, bool may_spill)
      : ledger_(make_ledger(quota_bytes, may_spill)), reference_(std::move(reference)) {}
  ~ComparedLedger() override {
    nb::gil_scoped_acquire lock;
    reference_.reset();
  }
  std::vector<LedgerEntry*> make_room(std::int64_t bytes) override {
    try {
      std::vector<LedgerEntry*> leaving = ledger_->make_room(bytes);
      note({"make_room", nullptr, bytes, keys_of(leaving)});
      return leaving;
    } catch (const Error& error) {
      note({"make_room", nullptr, bytes, {}, error.message});
      throw;
    }
  }
  std::vector<LedgerEntry*> cold() override {
    std::vector<LedgerEntry*> all = ledger_->cold();
    note({"cold", nullptr, kNone, keys_of(all)});
    return all;
  }
  void add(LedgerEntry& block) override {
    ledger_->add(block);
    note({"add", &block, block.bytes});
  }
  void use(LedgerEntry& block) override {
    ledger_->use(block);
    note({"use", &block});
  }
  void pin(LedgerEntry& block) override {
    ledger_->pin(block);
    note({"pin", &block});
  }
  void unpin(LedgerEntry& block) override {
    ledger_->unpin(block);
    note({"unpin", &block});
  }
  void spill(LedgerEntry& block) override {
    ledger_->spill(block);
    note({"spill", &block});
  }
  void restore(LedgerEntry& block) override {
    ledger_->restore(block);
    note({"restore", &block});
  }
  void remove(LedgerEntry& block) override {
    ledger_->remove(block);
    note({"remove", &block});
  }
  LedgerFigures figures() const override { return ledger_->figures(); }
  void reset_peaks() override {
    ledger_->reset_peaks();
    note({"reset_peaks"});
  }

  // Called under the interpreter's lock, without the pool's.
  void compare() {
    if (std::exchange(compares_, true)) return;  // a thread that Python has left in the middle
    const Compared end{compares_};
    for (;;) {
      std::vector<Call> calls;
      LedgerFigures after;
      {
        const std::lock_guard lock(mutex_);
        calls = std::exchange(calls_, {});
        after = after_;
      }
      if (calls.empty()) return;
      for (const Call& call : calls) tell(call);
      if (!reference_.attr("figures")().equal(ledger_dictionary(after)))
        fail(ErrorKind::runtime, "pool: the native ledger and its reference differ in figures");
    }
  }

 private:
  static constexpr std::int64_t kNone = -1;
  struct Call {
    const char* name;
    const LedgerEntry* block = nullptr;
    std::int64_t bytes = kNone;
    std::vector<std::uint64_t> answer = {};
    std::string refusal = {};
  };
  struct Compared {
    bool& compares;
    ~Compared() { compares = false; }
  };
  static std::uint64_t key_of(const LedgerEntry* block) {
    return reinterpret_cast<std::uint64_t>(block);
  }
  static std::vector<std::uint64_t> keys_of(const std::vector<LedgerEntry*>& blocks) {
    std::vector<std::uint64_t> keys;
    for (const LedgerEntry* block : blocks) keys.push_back(key_of(block));
    return keys;
  }
  void note(Call call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    after_ = ledger_->figures();
  }
  void tell(const Call& call) {
    nb::list arguments;
    if (call.block) arguments.append(key_of(call.block));
    if (call.bytes != kNone) arguments.append(call.bytes);
    std::vector<std::uint64_t> answer;
    std::string refusal;
    try {
      const nb::object said = reference_.attr(call.name)(*arguments);
      if (!said.is_none()) answer = nb::cast<std::vector<std::uint64_t>>(said);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_MemoryError)) throw;
      refusal = nb::str(error.value()).c_str();
    }
    if (answer != call.answer || refusal != call.refusal)
      fail(ErrorKind::runtime, "pool: the native ledger and its reference differ in ", call.name);
  }

  const std::unique_ptr<Ledger> ledger_;
  nb::object reference_;
  bool compares_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<Call> calls_;
  LedgerFigures after_{};
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

ChosenLedger choose_ledger(std::int64_t quota_bytes, bool may_spill) {
  if (env_integer("NATIVE_RUNTIME", 1)) return {make_ledger(quota_bytes, may_spill), [] {}};
  const nb::object type = nb::module_::import_("tilewright.memory.reference").attr("Ledger");
  auto ledger =
      std::make_unique<ComparedLedger>(type(quota_bytes, may_spill), quota_bytes, may_spill);
  ComparedLedger* const compared = ledger.get();
  return {std::move(ledger), [compared] { compared->compare(); }};
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
