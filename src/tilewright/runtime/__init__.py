"""Tasks within a memory budget: `Scheduler`, the tasks it makes, and the one that runs here;
`bind_modes` for threads of one's own; and `transfer`, which moves bytes beside the program.
"""

from tilewright._engine.modes import bind_modes
from tilewright.runtime import transfer as transfer
from tilewright.runtime.scheduler import Scheduler, current_task
from tilewright.runtime.task import Task

__all__ = ["Scheduler", "Task", "bind_modes", "current_task", "transfer"]
