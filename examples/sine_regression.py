"""A 1-32-32-1 tanh network learns sin(x) on [-pi, pi]."""

import math

import tilewright as tw

tw.manual_seed(0)
x = tw.linspace(-math.pi, math.pi, 256).reshape((-1, 1)).astype(tw.float32)
y = tw.sin(x)

model = tw.nn.Sequential(
    tw.nn.Linear(1, 32), tw.nn.Tanh(), tw.nn.Linear(32, 32), tw.nn.Tanh(), tw.nn.Linear(32, 1)
)
optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
for step in range(1, 1001):
    loss = tw.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: loss {loss.item():.2e}")
