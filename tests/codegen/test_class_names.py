"""A generated module imports the classes of plans by their names."""

import importlib
import inspect
import pkgutil
from collections import defaultdict

import celc_runtime.plan


def test_no_two_classes_of_plans_have_one_name() -> None:
    found: dict[str, set[type]] = defaultdict(set)
    for module in pkgutil.walk_packages(celc_runtime.plan.__path__, "celc_runtime.plan."):
        for name, made in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(made) and made.__module__.startswith("celc_runtime."):
                found[name].add(made)
    assert [name for name, classes in found.items() if len(classes) > 1] == []
