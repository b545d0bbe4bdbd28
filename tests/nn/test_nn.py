"""Modules: finding parameters, state, modes, layers and their first values."""

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn


def small_model():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))


class TestModule:
    def test_parameters_have_dotted_names_in_order_of_assignment(self):
        names = [name for name, _ in small_model().named_parameters()]
        assert names == ["0.weight", "0.bias", "2.weight"]

    def test_shared_modules_and_parameters_count_once(self):
        layer = nn.Linear(2, 2)
        model = nn.Sequential(layer, layer)
        assert len(list(model.parameters())) == 2
        assert len(list(model.modules())) == 2
        assert sorted(model.state_dict()) == ["0.bias", "0.weight", "1.bias", "1.weight"]

    def test_parameter_shares_memory_and_records_gradients(self):
        data = tw.zeros((2,))
        parameter = nn.Parameter(data)
        assert isinstance(parameter, tw.Tensor)
        assert parameter.requires_grad
        assert not data.requires_grad
        data.fill_(3.0)
        assert parameter.tolist() == [3.0, 3.0]
        (parameter * 2.0).sum().backward()
        assert parameter.grad.tolist() == [2.0, 2.0]

    def test_parameter_refuses_what_is_no_tensor(self):
        with pytest.raises(TypeError, match="Parameter: expected a tensor, got list"):
            nn.Parameter([1.0])

    def test_a_plain_tensor_cannot_replace_a_parameter(self):
        layer = nn.Linear(2, 2)
        with pytest.raises(TypeError, match=r"Linear\.weight: is a Parameter"):
            layer.weight = tw.zeros((2, 2))
        layer.bias = None
        assert [name for name, _ in layer.named_parameters()] == ["weight"]

    def test_buffers_are_saved_but_not_trained(self):
        module = nn.Module()
        module.register_buffer("mean", tw.zeros((3,)))
        assert [name for name, _ in module.named_buffers()] == ["mean"]
        assert list(module.parameters()) == []
        assert list(module.state_dict()) == ["mean"]

    def test_buffer_name_must_be_free(self):
        layer = nn.Linear(2, 2)
        with pytest.raises(ValueError, match="has that attribute already"):
            layer.register_buffer("weight", tw.zeros((2,)))

    def test_modes_reach_every_module(self):
        model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
        assert model.eval() is model
        assert not any(module.training for module in model.modules())
        model.train()
        assert all(module.training for module in model.modules())

    def test_apply_visits_children_first(self):
        seen = []
        small_model().apply(lambda module: seen.append(type(module).__name__))
        assert seen == ["Linear", "ReLU", "Linear", "Sequential"]

    def test_zero_grad_drops_gradients(self):
        model = small_model()
        model(tw.ones((1, 4))).sum().backward()
        model.zero_grad()
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_freezing(self):
        model = small_model().requires_grad_(False)
        assert not any(parameter.requires_grad for parameter in model.parameters())

    def test_repr_has_settings_and_modules_on_lines_of_their_own(self):
        assert repr(nn.MultiheadAttention(4, 2)) == (
            "MultiheadAttention(\n  4, 2, batch_first=False\n"
            "  (out_proj): Linear(4, 4, bias=True)\n)"
        )

    def test_repr_is_a_tree(self):
        assert repr(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1))) == (
            "Sequential(\n  (0): Linear(4, 3, bias=True)\n  (1): Dropout(p=0.1)\n)"
        )

    def test_forward_must_be_defined(self):
        with pytest.raises(NotImplementedError, match=r"define forward"):
            nn.Module()(1)


class TestStateDict:
    def test_round_trip(self):
        source, target = small_model(), small_model()
        target.load_state_dict(source.state_dict())
        x = tw.randn((5, 4))
        assert target(x).tolist() == source(x).tolist()

    def test_loading_changes_the_parameters_in_place(self):
        model = small_model()
        before = list(model.parameters())
        model.load_state_dict(small_model().state_dict())
        after = list(model.parameters())
        assert all(a is b for a, b in zip(after, before, strict=True))
        assert all(parameter.requires_grad for parameter in after)

    def test_all_problems_are_listed_and_nothing_changes(self):
        model = small_model()
        values = {name: value.tolist() for name, value in model.state_dict().items()}
        state = {"0.weight": tw.zeros((3, 4)), "2.weight": tw.zeros((9, 9)), "x": tw.zeros((1,))}
        with pytest.raises(ValueError, match="load_state_dict: Sequential:") as caught:
            model.load_state_dict(state)
        text = str(caught.value)
        assert "missing: 0.bias" in text
        assert "unexpected: x" in text
        assert "2.weight: shape (9, 9) does not fit (2, 3)" in text
        assert {name: value.tolist() for name, value in model.state_dict().items()} == values

    def test_not_strict_reports_names(self):
        differences = small_model().load_state_dict({"x": tw.zeros((1,))}, strict=False)
        assert differences.missing_keys == ["0.weight", "0.bias", "2.weight"]
        assert differences.unexpected_keys == ["x"]

    def test_values_must_be_tensors(self):
        with pytest.raises(ValueError, match=r"0\.bias: expected a tensor, got list"):
            small_model().load_state_dict({"0.bias": [1.0, 2.0, 3.0]}, strict=False)

    @pytest.mark.parametrize("state", [None, [("0.bias", 1)], 3])
    def test_a_state_is_a_dict(self, state):
        with pytest.raises(TypeError, match="expected a dict of tensors by name, got"):
            small_model().load_state_dict(state)

    def test_names_are_text(self):
        with pytest.raises(TypeError, match="3 cannot name a tensor"):
            small_model().load_state_dict({3: tw.zeros((1,))}, strict=False)

    def test_complex_values_do_not_load_into_real_ones_and_nothing_changes(self):
        model = small_model()
        values = {name: value.tolist() for name, value in model.state_dict().items()}
        state = {name: tw.zeros_like(value) for name, value in model.state_dict().items()}
        state["2.weight"] = tw.zeros((2, 3), dtype=tw.complex64)
        with pytest.raises(ValueError, match=r"2\.weight: complex64 does not fit float32"):
            model.load_state_dict(state)
        assert {name: value.tolist() for name, value in model.state_dict().items()} == values

    @pytest.mark.parametrize("dtype", [tw.float32, tw.bfloat16])
    @pytest.mark.parametrize("transposed", [False, True])
    def test_read_only_parameters_are_named_and_nothing_changes(self, dtype, transposed):
        module = nn.Module()
        module.first = nn.Parameter(tw.ones((2,)))
        fixed = tw.frombuffer(bytes(6 * dtype.itemsize), dtype=dtype, shape=(2, 3))
        module.fixed = nn.Parameter(fixed.T if transposed else fixed)
        state = {name: value + 5 for name, value in module.state_dict().items()}
        with pytest.raises(ValueError, match="fixed: the module's tensor is read-only"):
            module.load_state_dict(state)
        assert module.first.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
    def test_the_state_of_a_pytorch_module(self, dtype):
        torch = pytest.importorskip("torch")
        theirs = torch.nn.Sequential(
            torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2, bias=False)
        ).to(getattr(torch, dtype))
        ours = nn.Sequential(
            nn.Linear(4, 3, dtype=getattr(tw, dtype)),
            nn.ReLU(),
            nn.Linear(3, 2, bias=False, dtype=getattr(tw, dtype)),
        )
        for state in (theirs.state_dict(), dict(theirs.named_parameters())):
            for parameter in ours.parameters():
                nn.init.constant_(parameter, 0.0)
            ours.load_state_dict(state)
            for name, value in theirs.state_dict().items():
                assert ours.state_dict()[name].tolist() == value.tolist()
        # A copy: what happens to the one does not reach the other.
        ours[0].weight.detach().fill_(7.0)
        assert 7.0 not in theirs[0].weight.flatten().tolist()

    def test_arrays_of_numpy_and_conversion(self):
        weight = np.arange(12.0).reshape(4, 3).T  # float64, column-major
        layer = nn.Linear(4, 3)
        layer.load_state_dict({"weight": weight, "bias": np.array([1, 2, 3])})
        assert layer.weight.tolist() == weight.tolist()
        assert layer.bias.tolist() == [1.0, 2.0, 3.0]

    def test_bfloat16_of_numpy(self):
        ml_dtypes = pytest.importorskip("ml_dtypes")
        values = np.array([[1.5, -2.25]]).astype(ml_dtypes.bfloat16)
        layer = nn.Linear(2, 1, bias=False, dtype=tw.bfloat16)
        layer.load_state_dict({"weight": values})
        assert layer.weight.tolist() == [[1.5, -2.25]]

    def test_foreign_problems_are_listed_and_nothing_changes(self):
        torch = pytest.importorskip("torch")
        layer = nn.Linear(2, 2)
        before = {name: value.tolist() for name, value in layer.state_dict().items()}
        state = {"weight": torch.ones(2, 2).to_sparse(), "bias": np.array(["a", "b"]), "x": None}
        with pytest.raises(ValueError, match="unexpected: x") as caught:
            layer.load_state_dict(state)
        assert "weight: cannot read a Tensor of torch.float32" in str(caught.value)
        assert "bias: cannot read a ndarray of <U1" in str(caught.value)
        with pytest.raises(ValueError, match=r"bias: shape \(3,\) does not fit \(2,\)"):
            layer.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(3)})
        assert {name: value.tolist() for name, value in layer.state_dict().items()} == before

    def test_scalars_and_empty_tensors_load(self):
        module = nn.Module()
        module.scale = nn.Parameter(tw.ones(()))
        module.empty = nn.Parameter(tw.frombuffer(b"", dtype=tw.float32, shape=(3, 0)))
        module.load_state_dict({"scale": tw.asarray(4), "empty": tw.zeros((3, 0))})
        assert module.scale.item() == 4.0


class TestCycles:
    @pytest.fixture
    def parent(self):
        module = nn.Module()
        module.child = nn.Linear(2, 1)
        module.child.parent = module
        return module

    def test_names_end_where_a_module_returns(self, parent):
        names = ["child.weight", "child.bias"]
        assert [name for name, _ in parent.named_parameters()] == names
        assert list(parent.state_dict()) == names
        assert [name for name, _ in parent.named_modules()] == ["", "child"]
        assert list(parent.child.state_dict()) == ["weight", "bias"]

    def test_walks_end(self, parent):
        seen = []
        parent.eval().requires_grad_(False).apply(seen.append)
        assert seen == [parent.child, parent]
        assert not parent.child.training
        parent.load_state_dict(parent.state_dict())

    def test_repr_ends(self, parent):
        assert "(parent): ..." in repr(parent)

    def test_a_module_that_is_its_own_attribute(self):
        layer = nn.Linear(2, 1)
        layer.me = layer
        assert list(layer.state_dict()) == ["weight", "bias"]

    def test_a_list_cannot_hold_itself(self):
        for stack in (nn.Sequential(nn.ReLU()), nn.ModuleList()):
            before = len(stack)
            with pytest.raises(ValueError, match="cannot hold itself"):
                stack.append(stack)
            assert len(stack) == before


class TestLayers:
    @pytest.mark.parametrize("sizes", [("a", 2), (2, None), (2.0, 2), (True, 2)])
    def test_linear_sizes_are_whole_numbers(self, sizes):
        with pytest.raises(TypeError, match=r"Linear: (in|out)_features is a whole number, got"):
            nn.Linear(*sizes)

    @pytest.mark.parametrize("x", [[1.0, 2.0], None, 3.0, b"ab"])
    def test_linear_says_what_it_got(self, x):
        with pytest.raises(TypeError, match=rf"\(\.\.\., 2\), got {type(x).__name__};"):
            nn.Linear(2, 2)(x)

    def test_settings_of_another_type(self):
        with pytest.raises(TypeError, match="Dropout: probability is a number, got 'a'"):
            nn.Dropout("a")
        with pytest.raises(TypeError, match="Flatten: axes are whole numbers, got 'a'"):
            nn.Flatten("a")

    def test_linear_is_x_weight_transposed_plus_bias(self):
        layer = nn.Linear(2, 1)
        layer.weight.detach().copy_(tw.asarray([[2.0, 3.0]]))
        layer.bias.detach().copy_(tw.asarray([1.0]))
        assert layer(tw.asarray([[1.0, 1.0], [0.0, 2.0]])).tolist() == [[6.0], [7.0]]

    def test_linear_starts_within_its_bound(self):
        layer = nn.Linear(100, 50)
        for parameter in layer.parameters():
            assert abs(parameter.detach()).max().item() <= 0.1
        assert abs(layer.weight.detach()).max().item() > 0.09

    def test_linear_without_inputs(self):
        assert nn.Linear(0, 2)(tw.zeros((3, 0))).shape == (3, 2)

    def test_linear_refuses_negative_sizes(self):
        with pytest.raises(ValueError, match="negative number of features"):
            nn.Linear(-1, 2)

    def test_linear_of_another_dtype(self):
        assert nn.Linear(2, 2, dtype=tw.float64).weight.dtype == tw.float64

    @pytest.mark.parametrize(
        ("layer", "expected"),
        [
            (nn.ReLU(), [0.0, 0.0, 2.0]),
            (nn.Sigmoid(), [1 / (1 + math.exp(1)), 0.5, 1 / (1 + math.exp(-2))]),
            (nn.Tanh(), [math.tanh(-1), 0.0, math.tanh(2)]),
        ],
    )
    def test_activations(self, layer, expected):
        assert layer(tw.asarray([-1.0, 0.0, 2.0])).tolist() == pytest.approx(expected, rel=1e-6)

    def test_softmax_sums_to_one(self):
        y = nn.Softmax(axis=0)(tw.randn((3, 5)))
        assert tw.sum(y, axis=0).tolist() == pytest.approx([1.0] * 5, rel=1e-6)

    def test_flatten(self):
        x = tw.zeros((2, 3, 4, 5))
        assert nn.Flatten()(x).shape == (2, 60)
        assert nn.Flatten(0, 1)(x).shape == (6, 4, 5)
        with pytest.raises(IndexError, match="axis 7 is out of range"):
            nn.Flatten(7)(x)
        with pytest.raises(ValueError, match="lies behind"):
            nn.Flatten(2, 1)(x)

    def test_dropout_scales_what_it_keeps(self):
        tw.manual_seed(0)
        values = nn.Dropout(0.25)(tw.ones((10000,))).tolist()
        kept = [value for value in values if value]
        assert all(value == pytest.approx(4 / 3) for value in kept)
        # 7,500 ± five standard deviations (43).
        assert abs(len(kept) - 7500) < 217

    def test_dropout_passes_everything_in_evaluation(self):
        x = tw.randn((10,))
        assert nn.Dropout(0.9).eval()(x).tolist() == x.tolist()

    def test_dropout_refuses_a_bad_probability(self):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.Dropout(1.5)

    def test_losses(self):
        logits, targets = tw.asarray([[0.0, 0.0], [0.0, 0.0]]), tw.asarray([0, 1])
        assert nn.CrossEntropyLoss()(logits, targets).item() == pytest.approx(math.log(2))
        total = nn.CrossEntropyLoss(reduction="sum")(logits, targets).item()
        assert total == pytest.approx(2 * math.log(2))
        assert nn.MSELoss()(tw.asarray([1.0, 3.0]), tw.asarray([1.0, 1.0])).item() == 2.0
        with pytest.raises(ValueError, match="mean, sum, none"):
            nn.MSELoss("average")

    @pytest.mark.parametrize("kernel", ["", "body"])
    def test_cross_entropy_of_infinite_logits(self, kernel):
        logits = np.array([[1, np.inf], [-np.inf, 0], [-np.inf, -np.inf], [np.inf, 1], [2, 2]])
        x = tw.asarray(logits, copy=True).requires_grad_()
        forced = dict.fromkeys(("cross_entropy_rows", "cross_entropy_rows_backward"), kernel)
        with tw.kernels.use(**forced):
            targets = tw.asarray([0, 0, 1, 9, 1])
            losses = tw.cross_entropy(x, targets, reduction="none", ignore_index=9)
            losses.sum().backward()
        # log softmax: inf - inf where a logit is infinite, and where all are -inf.
        expected = [np.nan, np.inf, np.nan, 0.0, np.log(2)]
        np.testing.assert_allclose(losses.detach().numpy(), expected)
        nan = [np.nan, np.nan]
        np.testing.assert_allclose(x.grad.numpy(), [nan, [-1, 1], nan, [0, 0], [0.5, -0.5]])

    @pytest.mark.parametrize("kernel", ["", "body"])
    @pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
    def test_cross_entropy_of_large_logits(self, size, kernel):
        near = np.array([[0, 1, -2], [3, 3, 2]]) if size < 1e8 else np.zeros((2, 3))
        logits = (size + near).astype(np.float32)
        x = tw.asarray(logits, copy=True).requires_grad_()
        forced = dict.fromkeys(("cross_entropy_rows", "cross_entropy_rows_backward"), kernel)
        with tw.kernels.use(**forced):
            loss = tw.cross_entropy(x, tw.asarray([0, 1]), reduction="sum")
            loss.backward()
        wide = logits.astype(np.float64) - logits.max()
        p = np.exp(wide) / np.exp(wide).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(loss.item(), -np.log(p[[0, 1], [0, 1]]).sum(), rtol=1e-6)
        p[[0, 1], [0, 1]] -= 1
        np.testing.assert_allclose(x.grad.numpy(), p, rtol=1e-5, atol=1e-7)

    def test_containers(self):
        model = small_model()
        assert len(model) == 3
        assert isinstance(model[1], nn.ReLU)
        assert len(model[:2]) == 2
        assert model[:2][0] is model[0]
        layers = nn.ModuleList([nn.Linear(1, 1)])
        layers.append(nn.Linear(1, 1))
        assert len(list(layers.parameters())) == 4
        with pytest.raises(TypeError, match="expected a Module, got int"):
            nn.Sequential(3)


class TestInit:
    @pytest.mark.parametrize(
        ("fill", "std"),
        [
            (nn.init.kaiming_uniform_, math.sqrt(2 / 300)),
            (nn.init.kaiming_normal_, math.sqrt(2 / 300)),
            (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
            (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        ],
    )
    def test_standard_deviation(self, fill, std):
        weight = tw.empty((200, 300))
        assert fill(weight, generator=tw.Generator(0)) is weight
        measured = math.sqrt((weight * weight).mean().item())
        # 60,000 values: the estimate's relative error is about 0.3 %.
        assert measured == pytest.approx(std, rel=0.02)

    def test_fan_out(self):
        weight = tw.empty((200, 300))
        nn.init.kaiming_uniform_(weight, mode="fan_out", nonlinearity="relu")
        assert abs(weight).max().item() <= math.sqrt(6 / 200)

    def test_same_generator_seed_same_values(self):
        first, second = (nn.Linear(3, 3, generator=tw.Generator(7)) for _ in range(2))
        assert first.weight.tolist() == second.weight.tolist()

    def test_parameters_keep_recording(self):
        parameter = nn.Parameter(tw.zeros((2, 2)))
        nn.init.xavier_normal_(parameter)
        assert parameter.requires_grad

    def test_errors(self):
        with pytest.raises(ValueError, match="at least 2 axes"):
            nn.init.kaiming_normal_(tw.empty((3,)))
        with pytest.raises(ValueError, match="fan_in or fan_out"):
            nn.init.kaiming_normal_(tw.empty((3, 3)), mode="fan")
        with pytest.raises(ValueError, match="no gain for 'swish'"):
            nn.init.calculate_gain("swish")
