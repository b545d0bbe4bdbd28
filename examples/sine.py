"""A 1-32-32-1 tanh network learns sin(x) on [-pi, pi] from noisy samples."""

import argparse
import math

import tilewright as tw

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--plot", metavar="FILE", help="draw the fit (needs matplotlib)")
args = parser.parse_args()

tw.manual_seed(0)
x = tw.linspace(-math.pi, math.pi, 256).reshape((-1, 1)).astype(tw.float32)
y = tw.sin(x) + 0.1 * tw.randn(256, 1)

model = tw.nn.Sequential(
    tw.nn.Linear(1, 32), tw.nn.Tanh(), tw.nn.Linear(32, 32), tw.nn.Tanh(), tw.nn.Linear(32, 1)
)
optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
for step in range(1, args.steps + 1):
    loss = tw.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0 or step == args.steps:
        with tw.no_grad():
            error = tw.mse_loss(model(x), tw.sin(x)).item()
        print(f"step {step}: loss {loss.item():.2e}, squared error from the sine {error:.2e}")

if args.plot:
    import matplotlib.figure

    figure = matplotlib.figure.Figure()
    axes = figure.subplots()
    axes.plot(x, y, ".", label="samples")
    axes.plot(x, model(x).detach(), label="network")
    axes.legend()
    figure.savefig(args.plot)
