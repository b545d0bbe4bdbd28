"""Recurrent layers and cells: outputs and all gradients are PyTorch's with the same state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")

KINDS = {
    "tanh": ("RNN", {}),
    "relu": ("RNN", {"nonlinearity": "relu"}),
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
}
LAYOUTS = {
    "plain": {},
    "two layers": {"num_layers": 2},
    "both directions": {"bidirectional": True},
    "two layers both ways": {"num_layers": 2, "bidirectional": True},
    "batch first": {"batch_first": True},
    "without bias": {"bias": False},
    "all": {"num_layers": 3, "bidirectional": True, "batch_first": True, "bias": False},
}
FEATURES, HIDDEN, STEPS, BATCH = 3, 5, 6, 4


def pair(name: str, *args: Any, **options: Any) -> tuple[nn.Module, Any]:
    """Our module and PyTorch's with the same state, in float64."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options).double()
    ours = getattr(nn, name)(*args, **options, dtype=tw.float64)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def leaves(*shapes: tuple[int, ...]) -> tuple[list[tw.Tensor], list[Any]]:
    """The same random numbers for both, which record gradients."""
    rng = np.random.default_rng(7)
    data = [rng.normal(size=shape) for shape in shapes]
    return (
        [tw.tensor(x, requires_grad=True) for x in data],
        [torch.tensor(x, requires_grad=True) for x in data],
    )


def flat(made: Any) -> list[Any]:
    """The tensors of nested tuples."""
    return [x for part in made for x in flat(part)] if isinstance(made, tuple) else [made]


def assert_same(
    ours: nn.Module, theirs: Any, inputs: list, others: list, with_states: bool
) -> None:
    """Results and the gradients of inputs, first states and parameters."""
    made, expected = (
        flat(module(each[0], as_given(each[1:])) if with_states else module(each[0]))
        for module, each in ((ours, inputs), (theirs, others))
    )
    assert len(made) == len(expected)
    rng = np.random.default_rng(8)
    loss, their_loss = 0, 0
    for y, z in zip(made, expected, strict=True):
        assert y.shape == tuple(z.shape)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-10, atol=1e-12)
        g = rng.normal(size=y.shape)
        loss, their_loss = (
            loss + (y * tw.asarray(g)).sum(),
            their_loss + (z * torch.tensor(g)).sum(),
        )
    got = tw.grad(loss, [*inputs, *ours.parameters()])
    want = torch.autograd.grad(their_loss, [*others, *theirs.parameters()])
    names = [f"input {i}" for i in range(len(inputs))] + [n for n, _ in ours.named_parameters()]
    for g, w, name in zip(got, want, names, strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-9, atol=1e-10, err_msg=name)


def as_given(states: list[Any]) -> Any:
    return states[0] if len(states) == 1 else tuple(states)


class TestLayers:
    @pytest.mark.parametrize("states", ["zeros", "given"])
    @pytest.mark.parametrize("batched", [True, False], ids=["batch", "no batch"])
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("kind", KINDS)
    def test_pytorchs_results_and_gradients(self, kind, layout, batched, states):
        name, how = KINDS[kind]
        options = how | LAYOUTS[layout]
        ours, theirs = pair(name, FEATURES, HIDDEN, **options)
        count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
        batch = (BATCH,) if batched else ()
        first = (*batch, STEPS) if options.get("batch_first") else (STEPS, *batch)
        state = (count, *batch, HIDDEN)
        given = [state] * (2 if name == "LSTM" else 1) if states == "given" else []
        inputs, others = leaves((*first, FEATURES), *given)
        assert_same(ours, theirs, inputs, others, bool(given))

    @pytest.mark.parametrize(("steps", "batch"), [(21, 37), (3, 150), (130, 1)])
    @pytest.mark.parametrize("kind", KINDS)
    def test_more_rows_than_are_multiplied_at_a_time(self, kind, steps, batch):
        """Both directions: the last of the steps that are taken together are fewer."""
        name, how = KINDS[kind]
        ours, theirs = pair(name, 19, 40, num_layers=2, bidirectional=True, **how)
        assert_same(ours, theirs, *leaves((steps, batch, 19)), False)

    @pytest.mark.parametrize("name", ["LSTM", "GRU"])
    def test_gradients_beyond_the_cache(self, name):
        """Of so many gates that more rows are taken together, and these once more in part."""
        ours, theirs = pair(name, 7, 260)
        assert_same(ours, theirs, *leaves((35, 33, 7)), False)

    @pytest.mark.parametrize("which", tw.kernels.isas())
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_rows_place_changes_no_bit(self, kind, which):
        """In float32, on each instruction set, within its error of float64."""
        name, how = KINDS[kind]
        exact, _ = pair(name, 11, 21, **how)
        layer = getattr(nn, name)(11, 21, **how)
        layer.load_state_dict({k: v.astype(tw.float32) for k, v in exact.state_dict().items()})
        rng = np.random.default_rng(4)
        x, order = rng.normal(size=(9, 17, 11)).astype(np.float32), rng.permutation(17)

        def results(module: nn.Module, x: np.ndarray) -> list[np.ndarray]:
            given = tw.tensor(x, requires_grad=True)
            y, _ = module(given)
            return [y.detach().numpy(), tw.grad((y * y).sum(), [given])[0].numpy()]

        with tw.kernels.use(isa=which):
            made, moved = results(layer, x), results(layer, x[:, order])
        for a, b, c in zip(made, moved, results(exact, x.astype(np.float64)), strict=True):
            assert a[:, order].tobytes() == np.ascontiguousarray(b).tobytes()
            np.testing.assert_allclose(a, c, rtol=0, atol=2e-6)

    @pytest.mark.parametrize("shape", [(9, 37, 33), (2, 3, 33), (130, 1, 33)], ids=str)
    @pytest.mark.parametrize("kind", KINDS)
    def test_same_bits_without_gradients(self, kind, shape):
        """Though then nothing is kept of the gates."""
        name, how = KINDS[kind]
        layer = getattr(nn, name)(33, 47, 2, bidirectional=True, **how)
        x = tw.asarray(np.random.default_rng(3).normal(size=shape).astype(np.float32))
        made = flat(layer(x))
        with tw.no_grad():
            again = flat(layer(x))
        for a, b in zip(made, again, strict=True):
            assert a.detach().numpy().tobytes() == b.numpy().tobytes()

    @pytest.mark.parametrize("kind", KINDS)
    def test_gradients_of_some_weights_alone(self, kind):
        name, how = KINDS[kind]
        layer, _ = pair(name, FEATURES, HIDDEN, **how)
        (x,), _ = leaves((STEPS, BATCH, FEATURES))
        weights = list(layer.parameters())
        together = tw.grad((layer(x)[0] ** 2).sum(), weights)
        for weight, expected in zip(weights, together, strict=True):
            layer.requires_grad_(False)
            weight.requires_grad_(True)
            (alone,) = tw.grad((layer(x.detach())[0] ** 2).sum(), [weight])
            np.testing.assert_allclose(alone.numpy(), expected.numpy(), rtol=1e-11, atol=1e-13)

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_step_of_one_row(self, kind):
        name, how = KINDS[kind]
        ours, theirs = pair(name, 1, 1, **how)
        assert_same(ours, theirs, *leaves((1, 1, 1)), False)

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_empty_batch(self, kind):
        name, how = KINDS[kind]
        layer = getattr(nn, name)(FEATURES, HIDDEN, 2, **how)
        y, last = layer(tw.zeros((STEPS, 0, FEATURES)))
        assert y.shape == (STEPS, 0, HIDDEN)
        assert all(state.shape == (2, 0, HIDDEN) for state in flat(last))
        for g in tw.grad(y.sum(), list(layer.parameters())):
            assert not g.numpy().any()

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_sequence_in_two_parts(self, kind):
        """The last states of one part are the first states of the next."""
        name, how = KINDS[kind]
        layer, _ = pair(name, FEATURES, HIDDEN, 2, **how)
        (x,), _ = leaves((STEPS, BATCH, FEATURES))
        whole, last = layer(x)
        first, states = layer(x[:2])
        second, end = layer(x[2:], states)
        np.testing.assert_allclose(tw.concat([first, second]).tolist(), whole.tolist(), rtol=1e-12)
        for a, b in zip(flat(end), flat(last), strict=True):
            np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_layer_is_its_cell_in_a_loop(self, kind):
        name, how = KINDS[kind]
        layer, _ = pair(name, FEATURES, HIDDEN, **how)
        cell = getattr(nn, f"{name}Cell")(FEATURES, HIDDEN, **how, dtype=tw.float64)
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
        (x,), _ = leaves((STEPS, BATCH, FEATURES))
        states, state = [], None
        for t in range(STEPS):
            state = cell(x[t], state)
            states.append(flat(state)[0])
        np.testing.assert_allclose(tw.stack(states).tolist(), layer(x)[0].tolist(), rtol=1e-12)


class TestCells:
    @pytest.mark.parametrize("states", ["zeros", "given"])
    @pytest.mark.parametrize("batch", [(BATCH,), (1,), ()], ids=str)
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("kind", KINDS)
    def test_pytorchs_results_and_gradients(self, kind, bias, batch, states):
        name, how = KINDS[kind]
        ours, theirs = pair(f"{name}Cell", FEATURES, HIDDEN, bias=bias, **how)
        given = [(*batch, HIDDEN)] * (2 if name == "LSTM" else 1) if states == "given" else []
        inputs, others = leaves((*batch, FEATURES), *given)
        assert_same(ours, theirs, inputs, others, bool(given))

    def test_without_bias_there_are_none(self):
        cell = nn.GRUCell(2, 3, bias=False)
        assert cell.bias_ih is None
        assert cell.bias_hh is None
        assert list(cell.state_dict()) == ["weight_ih", "weight_hh"]

    def test_second_gradient_of_an_lstm_cell(self):
        ours, theirs = pair("LSTMCell", FEATURES, HIDDEN)
        inputs, others = leaves((BATCH, FEATURES), (BATCH, HIDDEN), (BATCH, HIDDEN))
        h, c = ours(inputs[0], tuple(inputs[1:]))
        p, q = theirs(others[0], tuple(others[1:]))
        ends, their_ends = [*inputs, *ours.parameters()], [*others, *theirs.parameters()]
        first = tw.grad((h * c * c).sum(), ends, create_graph=True)
        theirs_first = torch.autograd.grad((p * q * q).sum(), their_ends, create_graph=True)
        second = tw.grad(sum((g * g).sum() for g in first), ends)
        want = torch.autograd.grad(sum((g * g).sum() for g in theirs_first), their_ends)
        for g, w in zip(second, want, strict=True):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-8, atol=1e-10)

    @pytest.mark.parametrize("kind", KINDS)
    def test_second_gradient_of_finite_differences(self, kind):
        name, how = KINDS[kind]
        layer, _ = pair(name, 2, 3, bidirectional=True, **how)
        (x,), _ = leaves((3, 2, 2))
        assert tw.gradgradcheck(lambda x: layer(x)[0], (x,))


class TestState:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
    def test_names_and_shapes_are_pytorchs(self, name, layout):
        ours = getattr(nn, name)(FEATURES, HIDDEN, **LAYOUTS[layout])
        theirs = getattr(torch.nn, name)(FEATURES, HIDDEN, **LAYOUTS[layout])
        wanted = {key: tuple(value.shape) for key, value in theirs.state_dict().items()}
        assert {key: value.shape for key, value in ours.state_dict().items()} == wanted
        theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
        other = getattr(nn, name)(FEATURES, HIDDEN, **LAYOUTS[layout])
        other.load_state_dict(theirs.state_dict())
        for key, value in ours.state_dict().items():
            assert other.state_dict()[key].tolist() == value.tolist()
        assert repr(ours).replace("'", "") == repr(theirs).replace("'", "")

    @pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"])
    def test_first_values(self, name):
        ours = getattr(nn, name)(20, 16, generator=tw.Generator(1))
        again = getattr(nn, name)(20, 16, generator=tw.Generator(1))
        for a, b in zip(ours.parameters(), again.parameters(), strict=True):
            assert a.dtype == tw.float32
            assert a.tolist() == b.tolist()
            assert 0.2 < abs(a.detach().numpy()).max() <= 0.25
        weights = ours.state_dict()[next(iter(ours.state_dict()))].numpy()
        assert abs(weights.mean()) < 0.03
        assert weights.std() == pytest.approx(0.25 / 3**0.5, rel=0.1)


class TestDropout:
    def test_it_acts_between_layers_in_training_alone(self):
        ours, theirs = pair("LSTM", FEATURES, HIDDEN, num_layers=2, dropout=0.5)
        (x,), (z,) = leaves((STEPS, BATCH, FEATURES))
        a, b = ours(x)[0], ours(x)[0]
        assert a.tolist() != b.tolist()
        ours.eval(), theirs.eval()
        assert_same(ours, theirs, [x], [z], False)

    def test_all_dropped_is_an_upper_layer_that_sees_zeros(self):
        ours, theirs = pair("GRU", FEATURES, HIDDEN, num_layers=2, dropout=1.0)
        assert_same(ours, theirs, *leaves((STEPS, BATCH, FEATURES)), False)

    def test_probability_and_scale(self):
        """Below: a layer of ones. Above: h = the input, as its weights are one and zero."""
        layer = nn.RNN(1, 1, num_layers=2, nonlinearity="relu", bias=False, dropout=0.3)
        with tw.no_grad():
            for name, value in layer.named_parameters():
                value.copy_(tw.full(value.shape, float(name.startswith("weight_ih"))))
        y = layer(tw.ones((200, 100, 1)))[0].detach().numpy()
        np.testing.assert_allclose(np.unique(y), [0, 1 / 0.7], rtol=1e-6)
        # Five standard deviations of 20,000 draws.
        assert (y == 0).mean() == pytest.approx(0.3, abs=5 * (0.3 * 0.7 / 20_000) ** 0.5)

    @pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
    def test_nothing_to_act_between(self, name):
        with pytest.warns(UserWarning, match=f"{name}: dropout=0.5 .* num_layers is 1") as caught:
            getattr(nn, name)(2, 3, dropout=0.5)
        assert caught[0].filename == __file__


LAYERS = ("RNN", "LSTM", "GRU")
CELLS = ("RNNCell", "LSTMCell", "GRUCell")


class TestRefusals:
    @pytest.mark.parametrize("name", [*LAYERS, *CELLS])
    @pytest.mark.parametrize(
        ("sizes", "error", "text"),
        [
            ((2, 0), ValueError, "hidden_size must be at least 1, got 0"),
            ((2, -3), ValueError, "hidden_size must be at least 1, got -3"),
            ((0, 2), ValueError, "input_size must be at least 1, got 0"),
            ((2, 2.5), TypeError, "hidden_size is a whole number, got 2.5"),
            ((True, 2), TypeError, "input_size is a whole number, got True"),
        ],
    )
    def test_sizes(self, name, sizes, error, text):
        with pytest.raises(error, match=rf"^{name}: {text}$"):
            getattr(nn, name)(*sizes)

    @pytest.mark.parametrize("name", LAYERS)
    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"num_layers": 0}, ValueError, "num_layers must be at least 1, got 0"),
            ({"dropout": 1.5}, ValueError, "dropout lies between 0 and 1, got 1.5"),
            ({"dropout": -0.1}, ValueError, "dropout lies between 0 and 1, got -0.1"),
            ({"dropout": float("nan")}, ValueError, "dropout lies between 0 and 1, got nan"),
            ({"dropout": "much"}, TypeError, "dropout is a number, got 'much'"),
        ],
    )
    def test_settings(self, name, options, error, text):
        with pytest.raises(error, match=rf"^{name}: {text}$"):
            getattr(nn, name)(2, 3, **{"num_layers": 2} | options)

    @pytest.mark.parametrize("name", ["RNN", "RNNCell"])
    def test_nonlinearity(self, name):
        with pytest.raises(ValueError, match=f"^{name}: nonlinearity is 'tanh' or 'relu', got 'x'"):
            getattr(nn, name)(2, 3, nonlinearity="x")

    def test_projections(self):
        assert nn.LSTM(2, 3, proj_size=0).hidden_size == 3
        with pytest.raises(ValueError, match=r"^LSTM: .* proj_size must be 0, got 2$"):
            nn.LSTM(2, 3, proj_size=2)

    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("name", LAYERS)
    def test_inputs_of_layers(self, name, batch_first):
        layer = getattr(nn, name)(3, 4, batch_first=batch_first)
        axes = "batch, steps" if batch_first else "steps, batch"
        for shape in ((3,), (2, 2, 2, 3), ()):
            text = rf"^{name}: input {shape} must be ({axes}, 3), or (steps, 3) without a batch$"
            refuse(layer, text, tw.zeros(shape))
        refuse(layer, f"^{name}: input (5, 2, 7) has 7 features a step, and input_size is 3$")
        with pytest.raises(ValueError, match="no steps"):
            layer(tw.zeros((2, 0, 3) if batch_first else (0, 2, 3)))
        with pytest.raises(TypeError, match=f"^{name}: expected a Tensor, got list$"):
            layer([[1.0]])

    @pytest.mark.parametrize("name", LAYERS)
    def test_states_of_layers(self, name):
        layer = getattr(nn, name)(3, 4, 2, bidirectional=True)
        both = (lambda h: (tw.zeros((4, 2, 4)), h)) if name == "LSTM" else (lambda h: h)
        kind = "c0" if name == "LSTM" else "h0"
        x = tw.zeros((5, 2, 3))
        for shape in ((4, 2, 5), (2, 2, 4), (4, 3, 4), (4, 4)):
            text = f"^{name}: {kind} {shape} must be (4, 2, 4): "
            refuse(
                layer, text + "(layers * directions, batch, hidden_size)$", x, both(tw.ones(shape))
            )
        with pytest.raises(TypeError, match=f"^{name}: {kind} must be a Tensor, got float$"):
            layer(x, both(0.5))
        both = (lambda h: (tw.zeros((4, 4)), h)) if name == "LSTM" else (lambda h: h)
        text = f"^{name}: {kind} (4, 1, 4) must be (4, 4): (layers * directions, hidden_size)$"
        refuse(layer, text, x[:, 0], both(tw.ones((4, 1, 4))))

    @pytest.mark.parametrize("name", CELLS)
    def test_cells(self, name):
        cell = getattr(nn, name)(3, 4)
        refuse(cell, f"^{name}: input (5, 2, 7) must be (batch, 3), or (3,) without a batch$")
        refuse(cell, f"^{name}: input (2, 7) has 7 features a step, and", tw.zeros((2, 7)))
        both = (lambda h: (tw.zeros((2, 4)), h)) if name == "LSTMCell" else (lambda h: h)
        kind = "c" if name == "LSTMCell" else "h"
        text = f"^{name}: {kind} (3, 4) must be (2, 4): (batch, hidden_size)$"
        refuse(cell, text, tw.zeros((2, 3)), both(tw.ones((3, 4))))

    @pytest.mark.parametrize("name", ["LSTM", "LSTMCell"])
    def test_a_pair_is_a_pair(self, name):
        module = getattr(nn, name)(3, 4)
        with pytest.raises(TypeError, match=rf"^{name}: first states are a pair .*, got Tensor$"):
            module(tw.zeros((2, 3)), tw.zeros((1, 4)))
        with pytest.raises(TypeError, match=rf"^{name}: first states are a pair .*, got 1 of them"):
            module(tw.zeros((2, 3)), (tw.zeros((1, 4)),))


def refuse(module: nn.Module, text: str, x: tw.Tensor | None = None, states: Any = None) -> None:
    """That the call raises ValueError whose message is `text` between ^ and $."""
    x = tw.zeros((5, 2, 7)) if x is None else x
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the text is compared below)
        module(x, states)
    message = str(caught.value).splitlines()[0]
    start, whole = text.strip("^$"), text.endswith("$")
    assert message == start if whole else message.startswith(start)


class TestTypes:
    @pytest.mark.parametrize("kind", KINDS)
    def test_threads_change_no_bit(self, kind):
        name, how = KINDS[kind]
        layer = getattr(nn, name)(33, 47, 2, bidirectional=True, **how)
        rng = np.random.default_rng(3)
        x = tw.asarray(rng.normal(size=(9, 37, 33)).astype(np.float32))
        made = []
        before = tw.get_num_threads()
        try:
            for threads in (1, 2):
                tw.set_num_threads(threads)
                y, last = layer(x)
                loss = (y * y).sum() + sum((state * state).sum() for state in flat(last))
                grads = tw.grad(loss, list(layer.parameters()))
                made.append([each.detach().numpy().tobytes() for each in (y, *flat(last), *grads)])
        finally:
            tw.set_num_threads(before)
        assert made[0] == made[1]

    @pytest.mark.parametrize("kind", KINDS)
    def test_autocast(self, kind):
        name, how = KINDS[kind]
        layer = getattr(nn, name)(8, 16, 2, **how)
        x = tw.asarray(np.random.default_rng(3).normal(size=(5, 4, 8)).astype(np.float32))
        exact = layer(x)[0].detach().numpy()
        with tw.autocast("cpu", dtype=tw.bfloat16):
            y, last = layer(x)
        assert y.dtype == tw.bfloat16
        assert all(state.dtype == tw.bfloat16 for state in flat(last))
        # A few roundings to 8 bits, of numbers of magnitude one.
        np.testing.assert_allclose(y.astype(tw.float32).detach().numpy(), exact, atol=0.05)
        for grad in tw.grad(y.astype(tw.float32).sum(), list(layer.parameters())):
            assert grad.dtype == tw.float32
            assert np.isfinite(grad.numpy()).all()

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    @pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
    def test_results_in_the_layers_type(self, name, dtype):
        layer = getattr(nn, name)(3, 4, dtype=getattr(tw, dtype))
        y, last = layer(tw.ones((5, 2, 3), dtype=getattr(tw, dtype)))
        assert y.dtype == getattr(tw, dtype)
        assert all(state.dtype == y.dtype for state in flat(last))


def test_an_lstm_learns_to_remember():
    """The class of a sequence is the sign of its first number, six steps back."""
    tw.manual_seed(0)
    rng = np.random.default_rng(0)
    layer, head = nn.LSTM(1, 16), nn.Linear(16, 1)
    optimizer = tw.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.03)
    for _ in range(150):
        x = rng.normal(size=(6, 64, 1)).astype(np.float32)
        wanted = tw.asarray(np.sign(x[0]))
        loss = ((head(layer(tw.asarray(x))[0][-1]) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.4
