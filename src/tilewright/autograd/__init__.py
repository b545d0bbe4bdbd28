"""Gradients: functions with gradients of their own, and PyTorch's names of what walks the graph."""

from tilewright._core import grad, is_grad_enabled
from tilewright._engine.grad_mode import enable_grad, no_grad, set_grad_enabled
from tilewright.autograd import function, functional
from tilewright.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tilewright.autograd.backward import backward
from tilewright.autograd.function import Function
from tilewright.autograd.gradient_check import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
