"""A transformer whose training does not fit in its pool: spilled blocks, recomputed activations."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 4, 6, 48, 4


def model() -> tw.nn.Sequential:
    tw.manual_seed(5)
    return tw.nn.Sequential(
        *(
            tw.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.1, batch_first=True)
            for _ in range(LAYERS)
        )
    )


def trained(checkpointed: bool, steps: int = 3) -> list[bytes]:
    """The parameters after a few steps, dropout included."""
    net, rng = model(), np.random.default_rng(0)
    optimizer = tw.optim.AdamW(net.parameters(), lr=1e-3)
    tw.manual_seed(7)
    for _ in range(steps):
        x = tw.asarray(rng.standard_normal((BATCH, LENGTH, WIDTH), dtype=np.float32))
        optimizer.zero_grad()
        y = tw.checkpoint_sequential(net, LAYERS // 2, x) if checkpointed else net(x)
        (y**2).mean().backward()
        optimizer.step()
    return [p.detach().numpy().tobytes() for p in net.parameters()]


def peak(checkpointed: bool) -> int:
    tw.memory.reset_peaks()
    before = tw.memory.stats()["live_bytes"]
    trained(checkpointed, 1)
    return tw.memory.stats()["peak_live_bytes"] - before


# Small blocks stay, and checkpoints leave little else.
@pytest.mark.parametrize(("checkpointed", "share"), [(False, 0.5), (True, 0.75)])
def test_the_same_bits_in_less_memory(checkpointed, share, tmp_path):
    expected = trained(checkpointed)
    quota = int(peak(checkpointed) * share)
    with tw.memory.Pool(quota_bytes=quota, spill_dir=tmp_path) as pool:
        got = trained(checkpointed)
        stats = pool.stats()
    assert stats["spills"] > 0
    assert stats["peak_live_bytes"] <= quota
    assert got == expected


def test_checkpoints_take_less_memory():
    assert peak(True) < 0.75 * peak(False)
    assert trained(True) == trained(False)
