"""Tasks within a memory budget: `Scheduler`, the tasks it makes, and the one that runs here; and
`transfer`, which moves bytes beside the program.
"""

from tilewright.runtime import transfer as transfer
from tilewright.runtime.scheduler import Scheduler, current_task
from tilewright.runtime.task import Task

__all__ = ["Scheduler", "Task", "current_task", "transfer"]
