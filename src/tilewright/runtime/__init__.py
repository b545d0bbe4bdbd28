"""Tasks within a memory budget: `Scheduler`, the tasks it makes, and the one that runs here."""

from tilewright.runtime.scheduler import Scheduler, current_task
from tilewright.runtime.task import Task

__all__ = ["Scheduler", "Task", "current_task"]
