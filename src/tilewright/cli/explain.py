"""`tilewright explain`: which kernel runs for an op and a shape, and why."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import tilewright as tw
from tilewright._inspect.placement import AUTOMATIC, Placement, place
from tilewright._inspect.report_pages import of_explain
from tilewright.cli import arguments
from tilewright.cli.console import Console
from tilewright.cli.picture import check_plot

_DTYPES = ("float32", "float64", "float16", "bfloat16")


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "explain", run, "run an op once and say which kernel did it, and why"
    )
    parser.add_argument(
        "op", help="matmul, or an op of one or two tensors, such as exp, add or sum"
    )
    parser.add_argument(
        "shape", type=arguments.shape, help="matmul: MxKxN; otherwise the tensor's sizes"
    )
    parser.add_argument("--dtype", choices=_DTYPES, default="float32", help="default: float32")
    parser.add_argument(
        "--transpose-a", action="store_true", help="matmul: the first matrix lies transposed"
    )
    parser.add_argument(
        "--transpose-b", action="store_true", help="matmul: the second matrix lies transposed"
    )
    parser.add_argument("--kernel", metavar="NAME", help="force a kernel of this op")
    parser.add_argument(
        "--device",
        metavar="NAME",
        default="cpu",
        help="cpu, cuda, cuda:1, or auto for where it should take less time (default: cpu)",
    )
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the op twice, so that memory and threads are warm, and prints the second report."""
    check_plot(args.plot)
    arguments.check_devices([args.device])
    console = Console.of(args)
    if args.threads:
        tw.set_num_threads(args.threads)
    before = tw.active_device()
    try:
        placement = _placed(args)
        tw.set_device(placement.device if placement else args.device)
        report = _explained(args)
        if placement:
            report.placements.append(placement)
    finally:
        tw.set_device(before)
    console.text(str(report), of_explain(report) if args.html else None)
    console.json(report.as_dict())
    if args.plot:
        report.roofline(args.plot)
        console.line(f"picture: {args.plot}")
    return 0


def _placed(args: argparse.Namespace) -> Placement | None:
    """Where operands that lie there already would take less time; None where that is given."""
    if args.device != AUTOMATIC:
        return None

    tw.set_device("null")
    with tw.memory.record() as made:
        call = _call(args)
    return place(lambda _device: call(), held_bytes=made.events[-1]["live_bytes"])


def _explained(args: argparse.Namespace) -> tw.explain:
    call = _call(args)
    forced = {args.op: args.kernel} if args.kernel else {}
    with tw.kernels.use(**forced):
        call()
        with tw.explain() as report:
            call()
    return report


def _call(args: argparse.Namespace) -> Callable[[], Any]:
    return _matmul(args) if args.op == "matmul" else _other(args)


def _matmul(args: argparse.Namespace) -> Callable[[], Any]:
    if len(args.shape) != 3:
        raise ValueError(f"matmul needs three sizes MxKxN, got {'x'.join(map(str, args.shape))}")
    m, k, n = args.shape
    x = _operand(m, k, args.transpose_a, args.dtype)
    y = _operand(k, n, args.transpose_b, args.dtype)
    return lambda: x @ y


def _operand(rows: int, columns: int, transposed: bool, dtype: str) -> tw.Tensor:
    if transposed:
        return _random((columns, rows), dtype).T
    return _random((rows, columns), dtype)


def _other(args: argparse.Namespace) -> Callable[[], Any]:
    if args.transpose_a or args.transpose_b:
        raise ValueError(f"--transpose-a and --transpose-b are of matmul, not of {args.op}")
    op = getattr(tw, args.op, None)
    if args.op.startswith("_") or not callable(op) or isinstance(op, type):
        raise ValueError(f"no op {args.op!r}")
    x, y = _random(args.shape, args.dtype), _random(args.shape, args.dtype)
    for operands in ((x,), (x, y)):
        try:
            op(*operands)
        except TypeError:
            continue
        return partial(op, *operands)
    raise ValueError(f"{args.op} is no op of one or two {args.dtype} tensors")


def _random(shape: tuple[int, ...], dtype: str) -> tw.Tensor:
    return tw.randn(*shape).astype(getattr(tw, dtype))
