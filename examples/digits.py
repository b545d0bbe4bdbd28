"""The embedded 8x8 digits, trained in a second, saved and loaded again."""

import tempfile
from pathlib import Path

import tilewright as tw

images, labels = tw.data.digits()
x = images.reshape((-1, 64)).astype(tw.float32) / 16.0
y = labels.astype(tw.int64)

tw.manual_seed(0)
model = tw.nn.Sequential(tw.nn.Linear(64, 64), tw.nn.ReLU(), tw.nn.Linear(64, 10))
optimizer = tw.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(20):
    for xs, ys in tw.data.DataLoader((x[:1437], y[:1437]), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        tw.cross_entropy(model(xs), ys).backward()
        optimizer.step()

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "digits.safetensors"
    tw.save(model.state_dict(), file)
    model.load_state_dict(tw.load(file))

with tw.no_grad():
    hits = tw.argmax(model(x[1437:]), axis=1) == y[1437:]
print(f"test accuracy {hits.astype(tw.float32).mean().item():.2%}")
