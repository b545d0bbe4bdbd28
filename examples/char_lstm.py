"""An LSTM learns to write like Shakespeare, character by character: char_lstm.py --data FOLDER."""

import argparse

import tilewright as tw
from tilewright import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", help="folder of input.txt, or a text file (or TILEWRIGHT_DATA)")
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
args = parser.parse_args()

text = tw.data.tinyshakespeare(args.data)
vocabulary = tw.data.Vocabulary.from_text(text)
windows = tw.data.Windows(vocabulary.encode(text), length=128, stride=1)
order = tw.data.RandomSampler(windows, replacement=True, num_samples=32 * args.steps)


class CharLstm(nn.Module):
    def __init__(self, symbols, hidden):
        self.embedding = nn.Embedding(symbols, 64)
        self.lstm = nn.LSTM(64, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, symbols)

    def forward(self, tokens, state=None):
        y, state = self.lstm(self.embedding(tokens), state)
        return self.head(y), state


tw.manual_seed(0)
model = CharLstm(len(vocabulary), args.hidden)
optimizer = tw.optim.Adam(model.parameters(), lr=2e-3)
loader = tw.data.DataLoader(windows, batch_size=32, sampler=order)
for step, (x, y) in enumerate(loader, 1):
    optimizer.zero_grad()
    logits, _ = model(x)
    loss = tw.cross_entropy(logits.reshape((-1, len(vocabulary))), y.reshape((-1,)))
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

tokens, state = vocabulary.encode("\n"), None
with tw.no_grad():
    for _ in range(args.sample):
        logits, state = model(tokens.reshape((1, -1)), state)
        # The largest of logits with Gumbel's noise is a draw from their softmax.
        noise = -tw.log(-tw.log(tw.rand(len(vocabulary))))
        tokens = tw.argmax(logits[0, -1] / 0.8 + noise).reshape((1,))
        print(vocabulary.decode(tokens), end="", flush=True)
print()
