"""The library that `tilewright kernel new` writes: one kernel, how to build it, and a package."""

from __future__ import annotations

import re
from pathlib import Path

_RUNS = {
    "matmul": """\
/* The definition, which your kernel replaces. Types and layouts that it is not for, it refuses. */
static int accepts(const void *problem, const char **reason) {
  const tw_matmul *p = problem;
  if (p->dtype == TW_FLOAT32) return 1;
  *reason = "for float32 alone";
  return 0;
}

static int run(const void *problem) {
  const tw_matmul *p = problem;
  for (int64_t i = 0; i < p->batch; ++i) {
    const float *a = (const float *)p->a + i * p->a_batch;
    const float *b = (const float *)p->b + i * p->b_batch;
    const float *bias = p->bias;
    float *c = (float *)p->c + i * p->c_batch;
    for (int64_t row = 0; row < p->m; ++row)
      for (int64_t column = 0; column < p->n; ++column) {
        float sum = 0;
        for (int64_t l = 0; l < p->k; ++l)
          sum += a[row * p->a_row + l * p->a_column] * b[l * p->b_row + column * p->b_column];
        float *const out = c + row * p->c_row + column * p->c_column;
        sum *= (float)p->alpha;
        if (p->beta != 0) sum += (float)p->beta * *out;
        if (bias) sum += bias[row * p->bias_row + column * p->bias_column];
        *out = p->relu && sum < 0 ? 0 : sum;
      }
  }
  return 0;
}

/* An estimate in nanoseconds. With a good one the engine chooses your kernel where it is the
   fastest; with NULL in its place the kernel runs where it is forced alone. */
static double cost_ns(const void *problem) {
  const tw_matmul *p = problem;
  return 500 + 1.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
}
""",
    "convolution": """\
/* The definition, which your kernel replaces. Types that it is not for, it refuses. */
static int accepts(const void *problem, const char **reason) {
  const tw_convolution *p = problem;
  if (p->dtype == TW_FLOAT32) return 1;
  *reason = "for float32 alone";
  return 0;
}

/* One element of the result: image n, channel c, place i. */
static float sum_at(const tw_convolution *p, int64_t n, int64_t c, const int64_t *i) {
  const float *const x = p->a, *const w = p->b, *const bias = p->bias;
  const int64_t in = p->in / p->groups, group = c / (p->out / p->groups);
  float sum = bias ? bias[c] : 0;
  for (int64_t k = 0; k < in; ++k)
    for (int64_t d = 0; d < p->kernel[0]; ++d)
      for (int64_t h = 0; h < p->kernel[1]; ++h)
        for (int64_t v = 0; v < p->kernel[2]; ++v) {
          const int64_t tap[3] = {d, h, v};
          int64_t at[3];
          int inside = 1;
          for (int axis = 0; axis < 3; ++axis) {
            at[axis] = i[axis] * p->stride[axis] - p->before[axis] + tap[axis] * p->dilation[axis];
            inside &= at[axis] >= 0 && at[axis] < p->x[axis];
          }
          if (!inside) continue;
          const int64_t channel = n * p->in + group * in + k;
          sum += x[((channel * p->x[0] + at[0]) * p->x[1] + at[1]) * p->x[2] + at[2]] *
                 w[(((c * in + k) * p->kernel[0] + d) * p->kernel[1] + h) * p->kernel[2] + v];
        }
  return sum;
}

/* The channels of an image: threads of the engine take one each. */
static void channel(void *context, int64_t number) {
  const tw_convolution *p = context;
  const int64_t n = number / p->out, c = number % p->out;
  float *y = (float *)p->result + number * p->y[0] * p->y[1] * p->y[2];
  int64_t i[3];
  for (i[0] = 0; i[0] < p->y[0]; ++i[0])
    for (i[1] = 0; i[1] < p->y[1]; ++i[1])
      for (i[2] = 0; i[2] < p->y[2]; ++i[2]) *y++ = sum_at(p, n, c, i);
}

static int run(const void *problem) {
  const tw_convolution *p = problem;
  p->engine->parallel(p->batch * p->out, channel, (void *)p);
  return 0;
}

/* An estimate in nanoseconds. With a good one the engine chooses your kernel where it is the
   fastest; with NULL in its place the kernel runs where it is forced alone. */
static double cost_ns(const void *problem) {
  const tw_convolution *p = problem;
  const double taps = (double)(p->kernel[0] * p->kernel[1] * p->kernel[2]);
  const double places = (double)(p->y[0] * p->y[1] * p->y[2]);
  return 5000 + 4.0 * (double)(p->batch * p->out) * places * taps * (double)(p->in / p->groups);
}
""",
}
OPS = tuple(_RUNS)

_SOURCE = """\
/* A kernel of {op} for Tilewright. Build it with `make`, and try it with `make check`. */
#include <stddef.h>

#include "tilewright_kernel.h"

{body}
static const tw_kernel kernels[] = {{
    {{"{op}", "{name}", "a kernel from outside", accepts, cost_ns, run}},
}};

const tw_kernels *tilewright_kernels(void) {{
  static const tw_kernels all = {{TW_KERNEL_ABI, sizeof kernels / sizeof *kernels, kernels}};
  return &all;
}}
"""
_MAKEFILE = """\
CFLAGS = -O3 -march=native -Wall -Wextra
{module}/{name}.so: {name}.c
\t$(CC) $(CFLAGS) -shared -fPIC -fvisibility=default -I"$$(tilewright kernel include)" -o $@ $<

check: {module}/{name}.so  # right on many problems, and how fast beside the engine's own choice
\ttilewright kernel check $<
.PHONY: check
"""
_PROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "0.1.0"
dependencies = ["tilewright"]

[project.entry-points."tilewright.kernels"]
{name} = "{module}:library"

[tool.setuptools]
packages = ["{module}"]
package-data = {{ {module} = ["*.so"] }}
"""
_MODULE = '''\
"""A kernel of {op}, which Tilewright finds where this package is installed."""

from pathlib import Path


def library() -> str:
    """The path of the library."""
    return str(Path(__file__).with_name("{name}.so"))
'''


def write(folder: Path, op: str, name: str) -> list[Path]:
    """Writes the files into a folder that is new or empty; returns them.

    Raises ValueError for a name that is no identifier of C or an op without a template,
    FileExistsError where the folder has something in it.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"kernel new: a name is of a-z, 0-9 and _, got {name!r}")
    if op not in OPS:
        raise ValueError(f"kernel new: op must be one of {', '.join(OPS)}, got {op!r}")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"kernel new: {folder} is not empty")
    module = f"tilewright_{name}"
    words = {"op": op, "name": name, "module": module, "package": module.replace("_", "-")}
    files = {
        f"{name}.c": _SOURCE.format(body=_RUNS[op], **words),
        "Makefile": _MAKEFILE.format(**words),
        "pyproject.toml": _PROJECT.format(**words),
        f"{module}/__init__.py": _MODULE.format(**words),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in files]
