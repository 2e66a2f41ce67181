"""What the distribution `celc` needs: `celc-runtime` of its own version, and a list.

hatchling calls it when it builds (`tool.hatch.metadata.hooks.custom` in pyproject.toml has the
list). So the version stands in one place, and both distributions are released with the same one.
Rejected: a requirement in pyproject.toml that a test compares with the version, which is a second
place.
"""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """Fills in `dependencies`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the dependencies to what is known of the project, its version included."""
        own = f"celc-runtime=={metadata['version']}"
        metadata["dependencies"] = [own, *self.config["dependencies"]]
