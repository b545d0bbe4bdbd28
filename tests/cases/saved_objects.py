"""An object of each public class that can be pickled, and the file of their pickles.

`saved_objects.pickles.gz` was written before the modules moved into rooms: it holds what users may
have kept, with the module names of that time. `python tests/cases/saved_objects.py` writes it anew,
which only a build of that time may do: a newer one would write newer names.
"""

import gzip
import pickle
from pathlib import Path

import tilewright as tw
from tilewright import data, distributions, nn, optim

FILE = Path(__file__).with_suffix(".pickles.gz")

# What classes are called with, where that is something.
_LAYER_ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": (2, 4, [2]),
    "Bilinear": (1, 2, 1),
    "Buffer": (tw.ones(2),),
    "Embedding": (2, 1),
    "EmbeddingBag": (2, 1),
    "FractionalMaxPool2d": (2, 1),
    "FractionalMaxPool3d": (2, 1),
    "GroupNorm": (1, 2),
    "KeyValueCache": (1, 1, 2, 1),
    "Linear": (2, 1),
    "ModuleDict": ({"a": nn.Identity()},),
    "ModuleList": ([nn.Identity()],),
    "MultiheadAttention": (2, 1),
    "Parameter": (tw.ones(2),),
    "ParameterDict": ({"a": nn.Parameter(tw.ones(1))},),
    "ParameterList": ([nn.Parameter(tw.ones(1))],),
    "Sequential": (nn.Identity(), nn.ReLU()),
    "Threshold": (0.0, 1.0),
    "Transformer": (2, 1, 1, 1, 2),
    "TransformerDecoder": (nn.TransformerDecoderLayer(2, 1, 2), 1),
    "TransformerDecoderLayer": (2, 1, 2),
    "TransformerEncoder": (nn.TransformerEncoderLayer(2, 1, 2), 1),
    "TransformerEncoderLayer": (2, 1, 2, 0.0, nn.functional.gelu),
    "Unflatten": (1, (2, 1)),
    "Fold": ((2, 2), 1),
}
_LAYER_ARGUMENTS.update(
    {f"LazyConv{t}{n}d": (1, 1) for t in ("", "Transpose") for n in (1, 2, 3)},
    **{f"LPPool{n}d": (2, 2) for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": (1, 0.0) for n in (1, 2, 3)},
    **{f"Conv{t}{n}d": (1, 1, 1) for t in ("", "Transpose") for n in (1, 2, 3)},
    **{f"{kind}{cell}": (1, 1) for kind in ("RNN", "LSTM", "GRU") for cell in ("", "Cell")},
)
_ONE_SIZE = [
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AvgPool",
    "MaxPool",
    "MaxUnpool",
    "BatchNorm",
    "InstanceNorm",
    "CircularPad",
    "ReflectionPad",
    "ReplicationPad",
    "ZeroPad",
]
_LAYER_ARGUMENTS.update({f"{kind}{n}d": (2,) for kind in _ONE_SIZE for n in (1, 2, 3)})
_LAYER_ARGUMENTS.update(
    dict.fromkeys(
        ("ChannelShuffle", "LayerNorm", "LazyLinear", "LocalResponseNorm", "PixelShuffle",
         "PixelUnshuffle", "RMSNorm", "Unfold"),
        (2,),
    )
)  # fmt: skip


def _functions(module):
    """A module's public functions by name."""
    named = {name: getattr(module, name) for name in dir(module) if name[0].islower()}
    return {name: value for name, value in named.items()
            if callable(value) and value.__module__.startswith("tilewright")}  # fmt: skip


def _layers():
    for name in nn.__all__:
        kind = getattr(nn, name)
        if isinstance(kind, type):
            yield f"nn.{name}", kind(*_LAYER_ARGUMENTS.get(name, ()))
    net = nn.Linear(2, 2)
    yield "nn.utils.parametrizations", nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    yield "nn.utils.spectral_norm", nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2))
    yield "nn.utils.rnn", nn.utils.rnn.pack_sequence([tw.ones((2, 1)), tw.ones((1, 1))])
    net.register_forward_hook(nn.functional.gelu)
    yield "nn hooks", net
    yield "nn.functional", _functions(nn.functional)
    yield "nn.init", _functions(nn.init)


def _stepped(kind, *arguments):
    w = nn.Parameter(tw.ones((2, 1)))
    optimizer = kind([w], *arguments)
    w.grad = tw.ones((2, 1))
    optimizer.step(*([lambda: 0.0] if kind is optim.LBFGS else []))
    return optimizer


def _optimizers():
    for name in optim.__all__:
        kind = getattr(optim, name)
        if isinstance(kind, type) and kind not in (optim.EMA, optim.Optimizer):
            yield f"optim.{name}", _stepped(kind)
    yield "optim.EMA", optim.EMA(nn.Linear(1, 1))
    for average in ("ema_avg", "swa_avg", "ema_multi_avg", "swa_multi_avg"):
        function = getattr(optim.swa_utils, f"get_{average}_fn")()
        name = "multi_avg_fn" if "multi" in average else "avg_fn"
        yield (
            f"AveragedModel, {average}",
            optim.swa_utils.AveragedModel(nn.Linear(1, 1), **{name: function}),
        )

    def schedule(name, *arguments):
        kind = getattr(optim.lr_scheduler, name)
        return f"lr_scheduler.{name}", kind(_stepped(optim.SGD, 0.1), *arguments)

    for name in ("ConstantLR", "LinearLR", "PolynomialLR", "ReduceLROnPlateau"):
        yield schedule(name)
    for name in ("CosineAnnealingLR", "CosineAnnealingWarmRestarts", "StepLR"):
        yield schedule(name, 2)
    yield schedule("ExponentialLR", 0.5)
    yield schedule("CyclicLR", 0.1, 0.2)
    yield schedule("MultiStepLR", [1, 2])
    yield schedule("OneCycleLR", 0.1, 10)
    yield schedule("LambdaLR", abs)
    yield schedule("MultiplicativeLR", abs)
    yield "SWALR", optim.swa_utils.SWALR(_stepped(optim.SGD, 0.1), 0.05)
    both = _stepped(optim.SGD, 0.1)
    of = [optim.lr_scheduler.StepLR(both, 1), optim.lr_scheduler.ExponentialLR(both, 0.5)]
    yield "lr_scheduler.ChainedScheduler", optim.lr_scheduler.ChainedScheduler(of)
    yield "lr_scheduler.SequentialLR", optim.lr_scheduler.SequentialLR(both, of, [1])


def _distributions():
    half = tw.tensor([0.5, 0.5])
    square = tw.eye(2)
    given = {
        "Binomial": (3, half), "Dirichlet": (half,), "MultivariateNormal": (half, square),
        "NegativeBinomial": (3.0, half), "StudentT": (half,),
        "Multinomial": (3, half), "RelaxedBernoulli": (half, half),
        "RelaxedOneHotCategorical": (half, half),
        "Independent": (distributions.Normal(half, half), 1),
        "MixtureSameFamily": (distributions.Categorical(half), distributions.Normal(half, half)),
        "TransformedDistribution": (distributions.Normal(half, half),
                                    [distributions.ExpTransform()]),
        "ComposeTransform": ([distributions.ExpTransform(), distributions.TanhTransform()],),
        "AffineTransform": (1.0, 2.0), "Uniform": (0 * half, half),
    }  # fmt: skip
    one = [
        "Bernoulli",
        "Categorical",
        "OneHotCategorical",
        "OneHotCategoricalStraightThrough",
        "Geometric",
        "Poisson",
        "Exponential",
        "HalfNormal",
        "HalfCauchy",
    ]
    two = ["Beta", "Gamma", "Normal", "Cauchy", "Gumbel", "Laplace", "LogNormal"]
    for name, kind in sorted(vars(distributions).items()):
        if isinstance(kind, type) and kind is not distributions.Distribution:
            arguments = (half,) if name in one else (half, half) if name in two else ()
            yield f"distributions.{name}", kind(*given.get(name, arguments))


def _data():
    pairs = data.TensorDataset(tw.arange(3), tw.arange(3))
    yield "data.TensorDataset", pairs
    yield "data.Subset", data.Subset(pairs, [0, 2])
    yield "data.ConcatDataset", data.ConcatDataset([pairs, pairs])
    yield "data.StackDataset", data.StackDataset(pairs, pairs)
    yield "data.ByteVocabulary", data.ByteVocabulary()
    yield "data.Vocabulary", data.Vocabulary("abc")
    yield "data.Windows", data.Windows(tw.arange(5), 2)
    yield "data.Digits", data.Digits(tw.ones((1, 2)), tw.arange(1))
    yield "data.Mnist", data.Mnist(*[tw.arange(2)] * 4)
    yield "data.SequentialSampler", data.SequentialSampler(pairs)
    yield "data.RandomSampler", data.RandomSampler(pairs)
    yield "data.BatchSampler", data.BatchSampler(data.SequentialSampler(pairs), 2, False)
    yield "data.SubsetRandomSampler", data.SubsetRandomSampler([0, 1])
    yield "data.WeightedRandomSampler", data.WeightedRandomSampler([1.0, 2.0], 2)
    yield (
        "data.Compose",
        data.Compose([data.Normalize(0.0, 1.0), data.RandomCrop(2), data.RandomHorizontalFlip(),
                      data.RandomShift(1)]),
    )  # fmt: skip
    yield "data.DataLoader", data.DataLoader(pairs, batch_size=2)
    yield "data functions", _functions(data)


def _tensors():
    yield "Tensor", tw.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for name in ("bool", "int8", "uint16", "bfloat16", "float16", "float64", "complex128"):
        yield f"{name} tensor", tw.ones((2,), dtype=name)
        yield name, getattr(tw, name)
    yield "Generator", tw.Generator(5)
    yield "device", tw.ones(1).device
    yield "result", tw.ones((2, 2)).max(axis=0)
    yield "errors", {"Error": tw.Error, "StateError": tw.StateError}
    with tw.explain() as report:
        tw.ones((2, 2)) @ tw.ones((2, 2))
    yield "explain", report[-1]
    yield "summary", nn.summary(nn.Linear(2, 1), (1, 2))
    yield "auto_device", tw.auto_device(nn.Linear(2, 1), (1, 2))
    yield "finfo", tw.finfo(tw.float32)
    yield "functions", _functions(tw)
    yield "amp", tw.amp.GradScaler()
    yield "train.Options", tw.train.Options()


def objects():
    """By name: an object of each class."""
    tw.manual_seed(0)
    return {k: v for part in (_layers, _optimizers, _distributions, _data, _tensors)
            for k, v in part()}  # fmt: skip


def pickles():
    """Those of the file, by name."""
    return pickle.loads(gzip.decompress(FILE.read_bytes()))


def main():
    written = {name: pickle.dumps(value, 4) for name, value in objects().items()}
    FILE.write_bytes(gzip.compress(pickle.dumps(written, 4), mtime=0))


if __name__ == "__main__":
    main()
