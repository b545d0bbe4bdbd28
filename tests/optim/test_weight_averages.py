"""Averages of weights along a run, against their formulas and PyTorch's."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn
from tilewright.optim import EMA, swa_utils

torch = pytest.importorskip("torch")


def pair():
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).double()
    ours = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def move(ours, theirs, seed):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            step = np.asarray(rng.normal(size=p.shape))
            p.detach().copy_(p.detach() + tw.asarray(step))
            q.add_(torch.tensor(step))


@pytest.mark.parametrize("decay", [None, 0.9])
def test_averaged_models_are_pytorchs(decay):
    ours, theirs = pair()
    their_utils = torch.optim.swa_utils
    average = swa_utils.get_ema_multi_avg_fn(decay) if decay else None
    their_average = their_utils.get_ema_multi_avg_fn(decay) if decay else None
    mine = swa_utils.AveragedModel(ours, multi_avg_fn=average)
    other = their_utils.AveragedModel(theirs, multi_avg_fn=their_average)
    for seed in range(6):
        move(ours, theirs, seed)
        mine.update_parameters(ours)
        other.update_parameters(theirs)
    assert list(mine.state_dict()) != []
    assert sorted(mine.state_dict()) == sorted(other.state_dict())
    for name, value in other.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[name].tolist(), value.tolist(), rtol=1e-12)
    x = np.ones((2, 3))
    np.testing.assert_allclose(
        mine(tw.asarray(x)).detach().numpy(), other(torch.tensor(x)).detach().numpy(), rtol=1e-10
    )


@pytest.mark.parametrize("decay", [None, 0.9])
def test_averages_tensor_by_tensor_are_pytorchs(decay):
    ours, theirs = pair()
    models = []
    for utils, model in ((swa_utils, ours), (torch.optim.swa_utils, theirs)):
        function = utils.get_ema_avg_fn(decay) if decay else utils.get_swa_avg_fn()
        models.append(utils.AveragedModel(model, "cpu", function))
    for seed in range(4):
        move(ours, theirs, seed)
        for averaged, model in zip(models, (ours, theirs), strict=True):
            averaged.update_parameters(model)
    for name, value in models[1].state_dict().items():
        np.testing.assert_allclose(
            models[0].state_dict()[name].tolist(), value.tolist(), rtol=1e-12
        )


def test_wrong_arguments():
    model = nn.Linear(2, 2)
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    before = [x.tolist() for x in averaged.parameters()]
    with_buffer = nn.Linear(2, 2)
    with_buffer.register_buffer("mean", tw.zeros(1))
    for call, error, text in (
        (lambda: swa_utils.AveragedModel(3), TypeError, "expected a Module, got int"),
        (lambda: swa_utils.AveragedModel(model, avg_fn=3), TypeError, "avg_fn is a function"),
        (
            lambda: swa_utils.AveragedModel(model, None, max, max),
            ValueError,
            "avg_fn or multi_avg_fn, not both",
        ),
        (lambda: averaged.update_parameters(3), TypeError, "expected a Module, got int"),
        (
            lambda: averaged.update_parameters(nn.Linear(2, 3)),
            ValueError,
            r"weight has shape \(2, 2\) here, \(3, 2\) in the model",
        ),
        (
            lambda: averaged.update_parameters(with_buffer),
            ValueError,
            r"mean has shape None here, \(1,\) in the model",
        ),
        (lambda: swa_utils.get_ema_multi_avg_fn(1.5), ValueError, r"decay lies in \[0, 1\]"),
        (lambda: swa_utils.get_ema_avg_fn("1"), TypeError, "decay must be a number, got '1'"),
        (lambda: EMA(3), TypeError, "EMA: expected a Module, got int"),
        (lambda: EMA(model, "a"), TypeError, "EMA: decay must be a number, got 'a'"),
        (lambda: EMA(model).load_state_dict(3), TypeError, "EMA: load_state_dict: expected a dict"),
        (lambda: EMA(model).load_state_dict({}), ValueError, "missing .'averages', 'updates'"),
        (
            lambda: EMA(model).copy_to(nn.Linear(3, 2)),
            ValueError,
            r"weight: shape \(2, 3\) does not fit \(2, 2\)",
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    assert [x.tolist() for x in averaged.parameters()] == before


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers(use_buffers):
    model = nn.Linear(1, 1)
    model.register_buffer("mean", tw.zeros((2,)))
    model.register_buffer("count", tw.zeros((), dtype=tw.int64))
    averaged = swa_utils.AveragedModel(model, use_buffers=use_buffers)
    for value in (1.0, 3.0):
        model.mean.fill_(value)
        model.count.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module.mean.tolist() == [2.0 if use_buffers else 3.0] * 2
    assert averaged.module.count.item() == 3


def test_update_bn_is_pytorchs():
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double().eval()
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(5, 3)), 0) for _ in range(4)]
    torch.optim.swa_utils.update_bn([(torch.tensor(x), y) for x, y in batches], theirs)
    swa_utils.update_bn([(tw.asarray(x), y) for x, y in batches], ours)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].tolist(), value.tolist(), rtol=1e-12)
    assert not any(module.training for module in ours.modules())
    assert ours[1].momentum == 0.1
    ours.train()
    with pytest.raises(ValueError, match="linear"):
        swa_utils.update_bn([tw.zeros((2, 7), dtype=tw.float64)], ours)
    assert all(module.training for module in ours.modules())
    assert ours[1].momentum == 0.1


class TestEMA:
    def test_the_formula(self):
        ours, theirs = pair()
        ema = EMA(ours, decay=0.8)
        want = [p.detach().numpy().copy() for p in ours.parameters()]
        for seed in range(5):
            move(ours, theirs, seed)
            ema.update()
            want = [
                0.8 * w + 0.2 * p.detach().numpy()
                for w, p in zip(want, ours.parameters(), strict=True)
            ]
        for got, w in zip(ema.averages.values(), want, strict=True):
            np.testing.assert_allclose(got.numpy(), w, rtol=1e-12)

    def test_warmup_forgets_faster(self):
        model = nn.Linear(1, 1, bias=False)
        model.weight.detach().fill_(0.0)
        ema = EMA(model, decay=0.99, warmup=True)
        model.weight.detach().fill_(1.0)
        ema.update()
        assert ema.averages["weight"].item() == pytest.approx(0.9)
        ema.update()
        assert ema.averages["weight"].item() == pytest.approx(1 - 0.1 * 2 / 11)

    def test_the_model_has_the_averages_for_a_while(self):
        model = nn.Linear(2, 2)
        own = model.weight.tolist()
        ema = EMA(model, decay=0.5)
        model.weight.detach().fill_(7.0)
        with ema.averaged() as same:
            assert same is model
            assert model.weight.tolist() == own
        assert model.weight.tolist() == [[7.0] * 2] * 2

    def test_errors_leave_the_model_its_own_weights(self):
        model = nn.Linear(2, 2)
        ema = EMA(model)
        model.weight.detach().fill_(7.0)

        @ema.averaged()
        def fails():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert model.weight.tolist() == [[7.0] * 2] * 2

    def test_state_and_other_models(self):
        model = nn.Linear(2, 2)
        ema = EMA(model, decay=0.5)
        model.weight.detach().fill_(7.0)
        ema.update()
        other = EMA(copy.deepcopy(model))
        other.load_state_dict(ema.state_dict())
        target = nn.Linear(2, 2)
        other.copy_to(target)
        assert target.weight.tolist() == ema.averages["weight"].tolist()
        assert other.updates == 1
        with pytest.raises(ValueError, match="EMA: copy_to: parameters differ: bias"):
            ema.copy_to(nn.Linear(2, 2, bias=False))
        with pytest.raises(ValueError, match="averages differ: bias, weight"):
            ema.load_state_dict({"averages": {}, "updates": 1})
        wrong = {name: tw.zeros((9,)) for name in ema.averages}
        with pytest.raises(ValueError, match=r"weight: shape \(9,\) does not fit \(2, 2\)"):
            ema.load_state_dict({"averages": wrong, "updates": 1})

    @pytest.mark.parametrize("decay", [-0.1, 1.1, float("nan")])
    def test_decays(self, decay):
        with pytest.raises(ValueError, match=r"EMA: decay (lies in \[0, 1\]|must be finite)"):
            EMA(nn.Linear(1, 1), decay=decay)


class TestChangesOfModels:
    @staticmethod
    def models(library):
        class InOrder(library.nn.Module):
            def __init__(self, names):
                super().__init__()
                for name in names:
                    setattr(self, name, library.nn.Linear(2, 2))
                    self.get_submodule(name).register_buffer("mean", library.zeros(2))

        return InOrder("ab"), InOrder("ba")

    @pytest.mark.parametrize("use_buffers", [False, True])
    def test_tensors_are_paired_by_name(self, use_buffers):
        first, second = self.models(tw)
        averaged = swa_utils.AveragedModel(first, use_buffers=use_buffers)
        ema = EMA(first, 0.5)
        ema.model = second
        for value in (1.0, 3.0):
            for name, tensor in (*second.named_parameters(), *second.named_buffers()):
                tensor.detach().fill_(value if name.startswith("a") else -value)
            averaged.update_parameters(second)
            ema.update()
        held = dict(averaged.module.named_parameters()) | dict(averaged.module.named_buffers())
        for name, tensor in held.items():
            size = 2.0 if use_buffers or not name.endswith("mean") else 3.0
            want = size if name.startswith("a") else -size
            assert tensor.reshape((-1,)).tolist() == [want] * tensor.size, name
        assert all(
            bool(((x > 0) == name.startswith("a")).all()) for name, x in ema.averages.items()
        )

    def test_functions_changed_later_are_taken(self):
        model = nn.Linear(1, 1, bias=False)
        averaged = swa_utils.AveragedModel(model)
        assert (averaged.avg_fn, averaged.multi_avg_fn) == (None, None)

        def update(value):
            model.weight.detach().fill_(value)
            averaged.update_parameters(model)
            return averaged.module.weight.item()

        assert [update(0.0), update(2.0)] == [0.0, 1.0]
        averaged.avg_fn = lambda average, weight, count: weight * 10
        assert update(3.0) == 30.0
        averaged.multi_avg_fn = lambda averages, weights, count: averages[0].fill_(count)
        assert update(3.0) == 3.0
        averaged.avg_fn = averaged.multi_avg_fn = None
        assert update(8.0) == 4.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_averages_of_16_bits_go_on(dtype):
    """A thousandth of the way is less than half of a last place: rounded each time, none moves."""
    model = nn.Linear(1, 1, bias=False, dtype=getattr(tw, dtype))
    model.register_buffer("mean", tw.ones(1, dtype=getattr(tw, dtype)))
    model.weight.detach().fill_(1.0)
    decay, updates = 0.999, 1500
    averaged = {
        "multi": swa_utils.AveragedModel(
            model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay), use_buffers=True
        ),
        "single": swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(decay)),
    }
    ema = EMA(model, decay)
    for each in averaged.values():
        each.update_parameters(model)
    model.weight.detach().fill_(2.0)
    model.mean.fill_(2.0)
    for _ in range(updates):
        ema.update()
        for name in list(averaged):
            averaged[name].update_parameters(model)
            if _ == 700:
                averaged[name] = copy.deepcopy(averaged[name])
    want = 2 - decay**updates
    for each in averaged.values():
        assert each.module.weight.dtype == getattr(tw, dtype)
        assert each.module.weight.item() == pytest.approx(want, rel=2**-8)
    assert averaged["multi"].module.mean.item() == pytest.approx(want, rel=2**-8)
    assert ema.averages["weight"].item() == pytest.approx(want, rel=1e-5)
    with ema.averaged():
        assert model.weight.item() == pytest.approx(want, rel=2**-8)
    assert model.weight.item() == 2.0
    # What is written into the module is what goes on.
    averaged["multi"].module.weight.detach().fill_(-4.0)
    averaged["multi"].update_parameters(model)
    assert averaged["multi"].module.weight.item() == pytest.approx(-3.994, rel=2**-8)


def test_averaged_models_are_pickled_with_their_functions() -> None:
    averages = swa_utils
    for settings in (
        {},
        {"multi_avg_fn": averages.get_swa_multi_avg_fn()},
        {"multi_avg_fn": averages.get_ema_multi_avg_fn(0.75)},
        {"avg_fn": averages.get_ema_avg_fn(0.75)},
        {"avg_fn": averages.get_swa_avg_fn()},
    ):
        model = nn.Linear(2, 1)
        averaged = averages.AveragedModel(model, **settings)
        averaged.update_parameters(model)
        model, twin = pickle.loads(pickle.dumps((model, averaged)))
        with tw.no_grad():
            model.weight.add_(1)
        before = averaged.module.weight.tolist()
        twin.update_parameters(model)
        assert averaged.module.weight.tolist() == before
        averaged.update_parameters(model)
        assert twin.module.weight.tolist() == averaged.module.weight.tolist() != before
