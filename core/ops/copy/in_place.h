// In-place changes: every op that writes into a tensor that was there before asks here what may be
// written, what must be saved first, and where the tensor stands in the graph afterwards.
#pragma once
#include "core/autograd/node.h"
#include "core/tensor/operand.h"

namespace tw {

// Raises TypeError where a result of `type` would lose more than precision or range in `target`: an
// imaginary part, a fraction, or all but the truth.
void check_kind_in_place(const char* op, DType type, const Tensor& target);

class InPlaceChange {
 public:
  // `target` will be overwritten by what is computed from it and `sources`. Raises before anything
  // is changed: ValueError for memory that is read-only, on another device than a source, or whose
  // elements share a place;
  // RuntimeError, while recording is on, for leaves that require grad, views of them, and views
  // taken while recording was off whose base takes part in the graph.
  template <class... Sources>
  InPlaceChange(const char* op, const Tensor& target, const Sources&... sources)
      : op_(op),
        target_(target),
        recorded_(should_record(target, sources...) && is_differentiable(target.dtype())) {
    (check_device(sources), ...);
    check();
  }
  InPlaceChange(const InPlaceChange&) = delete;
  InPlaceChange& operator=(const InPlaceChange&) = delete;

  // Whether the change takes part in the graph.
  bool recorded() const { return recorded_; }
  // Whether some byte of `x` may be overwritten, be it through another storage.
  bool overwrites(const Tensor& x) const {
    if (!x) return false;
    const Storage &a = *x->storage, &b = *target_->storage;
    return (&a == &b || (a.shared_at && b.shared_at)) && may_overlap(x);
  }
  // Whether `x` is the target's elements in the same places.
  bool is_target(const Tensor& x) const;
  // Whether a copy of `x` into the target changes neither values nor graph.
  bool changes_nothing(const Tensor& x) const;
  // What the change reads instead of `x` so that the result is as if all sources had been copied
  // first: a copy where it lies partly in the target. For ops that work element by element.
  Tensor apart(const Tensor& x) const;
  // The same for ops that do not, and for what a gradient will read: a copy wherever it overlaps.
  Tensor before(const Tensor& x) const;

  // Counts the change. The last thing before the write.
  void begin() const { target_->storage->count_change(); }
  // Gives the target, once written, its place in the graph: `attach(y)` makes the handle `y` the
  // result of the op, whose edges it takes from `target` as it was. The base of a view gets a place
  // behind it, which its other views take over when they are next used. Only where recorded().
  template <class Attach> void join_graph(Tensor& target, Attach&& attach) const {
    Tensor y = moved();
    const bool retained = give_up_retainer();
    attach(static_cast<const Tensor&>(y));
    settle(y, retained);
    target = std::move(y);
  }

 private:
  void check() const;
  void check_device(const Tensor& source) const;
  bool may_overlap(const Tensor& x) const;
  Tensor moved() const;
  bool give_up_retainer() const;
  void settle(const Tensor& y, bool retained) const;

  const char* const op_;
  const Tensor& target_;  // as it was, until join_graph ends
  const bool recorded_;
};

}  // namespace tw
