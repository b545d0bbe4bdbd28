"""MNIST with a 784-256-10 network: python examples/mnist_mlp.py --data FOLDER_OF_THE_FOUR_FILES."""

import argparse

import tilewright as tw

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", help="folder of the files (default: TILEWRIGHT_DATA)")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--images", type=int, default=50000, help="how many to train on")
args = parser.parse_args()

mnist = tw.data.mnist(args.data)
images = mnist.train_images[: args.images].reshape((-1, 784)).astype(tw.float32) / 255.0
labels = mnist.train_labels[: args.images].astype(tw.int64)
test_images = mnist.test_images.reshape((-1, 784)).astype(tw.float32) / 255.0

tw.manual_seed(0)
model = tw.nn.Sequential(tw.nn.Linear(784, 256), tw.nn.ReLU(), tw.nn.Linear(256, 10))
optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(args.epochs):
    for x, y in tw.data.DataLoader((images, labels), batch_size=64, shuffle=True):
        loss = tw.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with tw.no_grad():
        hits = tw.argmax(model(test_images), axis=1) == mnist.test_labels.astype(tw.int64)
    accuracy = hits.astype(tw.float32).mean().item()
    print(f"epoch {epoch + 1}: test accuracy {accuracy:.2%}")
