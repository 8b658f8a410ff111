"""Whether something can be an agent at all, found out before anybody calls it."""

import inspect

__all__ = ["why_no_agent"]


def why_no_agent(candidate: object) -> str:
    """Return why something cannot be called with a ``TaskContext``, or ``""`` if it can."""
    name = getattr(candidate, "__qualname__", type(candidate).__qualname__)
    if isinstance(candidate, type):
        return f"{name} is a class; an agent is a function, or an instance with an async __call__"
    if not callable(candidate):
        return f"an agent is a function of a TaskContext, not {type(candidate).__name__}"
    if _is_generator(candidate) or _is_generator(type(candidate).__call__):
        return f"{name} is a generator; publish chunks with task.artifact and return the rest"
    try:
        inspect.signature(candidate).bind(None)
    except TypeError as exc:
        return f"{name} does not take one argument, the TaskContext: {exc}"
    except ValueError:
        return ""  # written in C: nobody can tell
    return ""


def _is_generator(function: object) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
