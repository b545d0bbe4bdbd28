"""Training as a library: tasks with their models, the loop, the ladder, and checkpoints."""

from tilewright.train.checkpoint import Checkpoint
from tilewright.train.images import Task, accuracy
from tilewright.train.ladder import ladder
from tilewright.train.loop import forced, placed, train
from tilewright.train.options import AUTOMATIC, LEARNING_RATES, MODELS, Options
from tilewright.train.run import METRICS, Epoch, Metric, OnBatch, OnEpoch, Progress, Run
from tilewright.train.sine import Sine
from tilewright.train.task import Trainable, build_model, build_optimizer
from tilewright.train.tasks import TASKS, default_options, load_images, load_task, models_of
from tilewright.train.text import Text

__all__ = [
    "AUTOMATIC",
    "LEARNING_RATES",
    "METRICS",
    "MODELS",
    "TASKS",
    "Checkpoint",
    "Epoch",
    "Metric",
    "OnBatch",
    "OnEpoch",
    "Options",
    "Progress",
    "Run",
    "Sine",
    "Task",
    "Text",
    "Trainable",
    "accuracy",
    "build_model",
    "build_optimizer",
    "default_options",
    "forced",
    "ladder",
    "load_images",
    "load_task",
    "models_of",
    "placed",
    "train",
]
