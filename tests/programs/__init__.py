"""Random programs: made from a seed, run on Tilewright and on PyTorch, judged and made small."""
