"""A small GPT learns to write like Shakespeare: gpt.py --data FOLDER."""

import argparse

import tilewright as tw
from tilewright import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", help="folder of input.txt, or a text file (or TILEWRIGHT_DATA)")
parser.add_argument("--steps", type=int, default=500)
args = parser.parse_args()
width, heads, layers, context = 128, 4, 4, 128


class Block(nn.Module):
    def __init__(self):
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 512), nn.GELU(), nn.Linear(512, width))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.attn(self.ln_1(x)).reshape((b, t, 3, heads, -1)).permute(2, 0, 3, 1, 4)
        y = tw.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.swapaxes(1, 2).reshape((b, t, width)))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, symbols):
        self.wte, self.wpe = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*[Block() for _ in range(layers)])
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(tw.arange(tokens.shape[1]))
        return self.head(self.ln_f(self.h(x)))


text = tw.data.tinyshakespeare(args.data)
vocabulary = tw.data.Vocabulary.from_text(text)
windows = tw.data.Windows(vocabulary.encode(text), context, stride=1)
order = tw.data.RandomSampler(windows, replacement=True, num_samples=32 * args.steps)
tw.manual_seed(0)
model = Gpt(len(vocabulary))
optimizer = tw.optim.AdamW(model.parameters(), lr=1e-3)
for step, (x, y) in enumerate(tw.data.DataLoader(windows, 32, sampler=order), 1):
    loss = tw.cross_entropy(model(x).reshape((-1, len(vocabulary))), y.reshape((-1,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")

tokens = vocabulary.encode("\n")
with tw.no_grad():
    for _ in range(200):  # the largest of logits with Gumbel's noise is a draw from their softmax
        logits = model(tokens[-context:].reshape((1, -1)))[0, -1] / 0.8
        drawn = tw.argmax(logits - tw.log(-tw.log(tw.rand(len(vocabulary)))))
        tokens = tw.concat([tokens, drawn.reshape((1,))])
print(vocabulary.decode(tokens))
