"""MNIST with two convolutions, on images that are shifted at random: mnist_cnn.py --data FOLDER."""

import argparse

import tilewright as tw
from tilewright import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", help="folder of the files (default: TILEWRIGHT_DATA)")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--images", type=int, default=60000, help="how many to train on")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(64 * 7 * 7, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(tw.relu(self.conv1(x)))
        x = self.pool(tw.relu(self.conv2(x)))
        x = tw.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


mnist = tw.data.mnist(args.data)
train = tw.data.TensorDataset(mnist.train_images[: args.images], mnist.train_labels[: args.images])
test = tw.data.TensorDataset(mnist.test_images, mnist.test_labels)
shift = tw.data.RandomShift(2)


def pixels(images):
    return images.reshape((-1, 1, 28, 28)).astype(tw.float32) / 255.0


tw.manual_seed(0)
model = Net()
optimizer = tw.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(args.epochs):
    for x, y in tw.data.DataLoader(train, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = tw.cross_entropy(model(shift(pixels(x))), y.astype(tw.int64))
        loss.backward()
        optimizer.step()
    hits = 0
    with tw.no_grad():
        for x, y in tw.data.DataLoader(test, batch_size=500):
            hits += (model(pixels(x)).argmax(1) == y.astype(tw.int64)).sum().item()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test accuracy {hits / len(test):.2%}")
