"""On a shared machine the time of one example says nothing about the parser under test."""

from hypothesis import settings

if settings.default is not None and settings.default.deadline is not None:
    settings.register_profile("unhurried", settings.default, deadline=None)
    settings.load_profile("unhurried")
