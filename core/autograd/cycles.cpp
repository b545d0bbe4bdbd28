// Trial deletion, after Bacon and Rajan, "Concurrent cycle collection in reference counted systems"
// (2001): references that were met on the way from the owners are subtracted from the counts; what
// has some left is held from elsewhere.
#include "core/autograd/cycles.h"

#include <unordered_map>
#include <utility>

namespace tw {

namespace {

enum class Kind : std::uint8_t { header, node, frame, family };

struct Found {
  const void* object;
  Kind kind;
  bool held = false;       // from elsewhere, or by something that is
  std::uint32_t seen = 0;  // references met
  std::size_t group = 0;   // in the forest of groups
};

class Search {
 public:
  void add_owner(const TensorHeader* header) { meet(header, Kind::header); }

  void run() {
    for (std::size_t i = 0; i < found_.size(); ++i) each_reference(i, &Search::meet);
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (found_[i].seen != references(i)) hold(i);
    while (!held_.empty()) {
      const std::size_t i = held_.back();
      held_.pop_back();
      each_reference(i, &Search::hold_object);
    }
    for (std::size_t i = 0; i < found_.size(); ++i) found_[i].group = i;
    for (at_ = 0; at_ < found_.size(); ++at_)
      if (!found_[at_].held) each_reference(at_, &Search::join);
  }

  std::vector<OwnedFunctions> groups(const std::vector<TensorHeader*>& owners) {
    std::unordered_map<std::size_t, OwnedFunctions> groups;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (!found_[i].held) add_functions(i, groups);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const auto group = groups.find(root_of(places_.at(owners[i])));
      if (group != groups.end() && !found_[places_.at(owners[i])].held)
        group->second.owners.push_back(i);
    }
    std::vector<OwnedFunctions> out;
    for (auto& [root, group] : groups) out.push_back(std::move(group));
    return out;
  }

 private:
  using Step = void (Search::*)(const void* object, Kind kind);

  void meet(const void* object, Kind kind) {
    const auto [place, is_new] = places_.try_emplace(object, found_.size());
    if (is_new) found_.push_back({object, kind});
    ++found_[place->second].seen;
  }
  void hold(std::size_t i) {
    if (!std::exchange(found_[i].held, true)) held_.push_back(i);
  }
  void hold_object(const void* object, Kind) { hold(places_.at(object)); }
  void join(const void* object, Kind) {
    const std::size_t other = places_.at(object);
    found_[root_of(other)].group = root_of(at_);
  }
  std::size_t root_of(std::size_t i) {
    while (found_[i].group != i) i = found_[i].group = found_[found_[i].group].group;
    return i;
  }

  const TensorHeader& header(std::size_t i) const {
    return *static_cast<const TensorHeader*>(found_[i].object);
  }
  const Node& node(std::size_t i) const { return *static_cast<const Node*>(found_[i].object); }
  const CheckpointFrame& frame(std::size_t i) const {
    return *static_cast<const CheckpointFrame*>(found_[i].object);
  }
  const ViewFamily& family(std::size_t i) const {
    return *static_cast<const ViewFamily*>(found_[i].object);
  }
  std::uint32_t references(std::size_t i) const {
    switch (found_[i].kind) {
      case Kind::header: return header(i).references;
      case Kind::node: return node(i).references;
      case Kind::family: return family(i).references;
      case Kind::frame: break;
    }
    return frame(i).references;
  }

  // Calls `step` for every reference that an object is known to hold.
  void each_reference(std::size_t i, Step step) {
    step_ = step;
    switch (found_[i].kind) {
      case Kind::header: return each_of_header(header(i));
      case Kind::node: return each_of_node(node(i));
      case Kind::family: return take(family(i).kept.get(), Kind::header);
      case Kind::frame: break;
    }
    frame(i).each_held(
        [](void* self, const SavedTensor* saved, const Tensor* value) {
          if (saved) return static_cast<Search*>(self)->take(*saved);
          static_cast<Search*>(self)->take(value->get(), Kind::header);
        },
        this);
  }
  void each_of_header(const TensorHeader& x) {
    take(static_cast<const Node*>(x.grad_fn.get()), Kind::node);
    take(x.family.get(), Kind::family);
    if (x.extras) take(x.extras->grad.get(), Kind::header);
  }
  void each_of_node(const Node& node) {
    for (int i = 0; i < node.inputs; ++i) {
      take(static_cast<const Node*>(node.edges[i].node.get()), Kind::node);
      take(node.edges[i].leaf.get(), Kind::header);
    }
    for (int i = 0; i < node.results; ++i) take(node.places[i].pending.get(), Kind::header);
    node.each_saved([](void* self, const SavedTensor& s) { static_cast<Search*>(self)->take(s); },
                    this);
  }
  void take(const void* object, Kind kind) {
    if (object) (this->*step_)(object, kind);
  }
  // A place is its node's own and holds one reference to the frame, one to where its value is from.
  void take(const SavedTensor& saved) {
    take(saved.header(), Kind::header);
    if (!saved.place()) return;
    take(frame_of(*saved.place()), Kind::frame);
    take(origin_of(*saved.place()), Kind::node);
  }

  void add_functions(std::size_t i, std::unordered_map<std::size_t, OwnedFunctions>& groups) {
    const auto add = [&](const HookList& hooks) {
      for (const HookEntry& hook : hooks.entries())
        groups[root_of(i)].functions.push_back({.hook = &hook.call, .id = hook.id});
    };
    switch (found_[i].kind) {
      case Kind::header:
        if (!header(i).extras) return;
        add(header(i).extras->forward_hooks);
        add(header(i).extras->backward_hooks);
        return add(header(i).extras->grad_hooks);
      case Kind::node:
        for (int r = 0; r < node(i).results; ++r)
          if (node(i).places[r].hooks) add(*node(i).places[r].hooks);
        if (const CustomNode* custom = node(i).custom())
          groups[root_of(i)].functions.push_back(
              {.gradient = &custom->gradient(), .id = custom->id()});
        return;
      case Kind::family: return;
      case Kind::frame:
        groups[root_of(i)].functions.push_back({.rerun = &frame(i).rerun(), .id = frame(i).id()});
    }
  }

  std::vector<Found> found_;
  std::unordered_map<const void*, std::size_t> places_;
  std::vector<std::size_t> held_;  // whose references are still to be followed
  std::size_t at_ = 0;
  Step step_ = nullptr;
};

}  // namespace

void HeldFunction::forget() const {
  if (hook)
    HookList::remove(id);
  else if (gradient)
    CustomNode::forget_gradient(id);
  else
    CheckpointFrame::forget_function(id);
}

std::vector<OwnedFunctions> find_owned(const std::vector<TensorHeader*>& owners) {
  Search search;
  for (const TensorHeader* header : owners) search.add_owner(header);
  search.run();
  return search.groups(owners);
}

}  // namespace tw
