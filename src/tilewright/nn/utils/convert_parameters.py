"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters one after the other; part of the graph.

    Shapes: parameters of any shapes; the result is (elements,).
    Types: all. Result: the common type.
    Raises ValueError for no parameters, TypeError for what is no tensor.
    Source: PyTorch's torch.nn.utils.parameters_to_vector.

    >>> import tilewright as tw
    >>> tw.nn.utils.parameters_to_vector([tw.ones((2, 2)), tw.zeros((1,))]).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    return tw.concat([tw.reshape(parameter, (-1,)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into the parameters.

    Raises ValueError, before anything is changed, where the vector has another number of them.

    Shapes: vec (elements,), parameters of any shapes.
    Types: all. Result: None.
    Source: PyTorch's torch.nn.utils.vector_to_parameters.
    """
    targets = list(parameters)
    count = sum(target.size for target in targets)
    if vec.shape != (count,):
        raise ValueError(
            f"vector_to_parameters: vector of shape {vec.shape} for {count} elements of "
            f"{len(targets)} parameters"
        )
    first = 0
    with tw.no_grad():
        for target in targets:
            target.detach().copy_(vec[first : first + target.size].reshape(target.shape))
            first += target.size
