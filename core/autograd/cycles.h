// Which functions that tensors and nodes hold for a frontend are kept by the frontend's own objects
// alone. Reference counts cannot free a hook whose closure leads back to its tensor; a collector of
// the frontend can, once it knows which of its objects the hook belongs to.
#pragma once
#include <cstdint>
#include <vector>

#include "core/autograd/checkpoint.h"
#include "core/autograd/user_function.h"
#include "core/tensor/tensor.h"

namespace tw {

// A hook, the function of a checkpoint frame, or the gradient of a custom node; the others are
// null.
struct HeldFunction {
  const Hook* hook = nullptr;
  const CheckpointFrame::Rerun* rerun = nullptr;
  const CustomGradient* gradient = nullptr;
  std::uint64_t id;
  // Frees the function, where it still exists.
  void forget() const;
};

// Tensors whose graphs meet, and the functions that go when the last of them goes.
struct OwnedFunctions {
  std::vector<std::size_t> owners;  // positions in what find_owned was given
  std::vector<HeldFunction> functions;
};

// `owners` are headers with one reference from an object of the frontend each. What is held from
// elsewhere too (other objects, running ops, values that a node does not show) is left out, and
// with it all that it leads to. Linear in the size of the graphs.
std::vector<OwnedFunctions> find_owned(const std::vector<TensorHeader*>& owners);

}  // namespace tw
