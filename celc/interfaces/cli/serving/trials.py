"""The runs that the language server asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from celc.editor.beside import Ended
from celc.interfaces.cli.serving.limits import run
from celc.interfaces.cli.settings import project


class TrialsOf:
    """Runs with the settings of each file's project; `given` is the server's command line."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = given

    def events(self, file: Path) -> list[str]:
        """The names of the events that the settings of a file name."""
        return project.events_for(file)

    def run(self, file: Path, text: str, words: Sequence[str]) -> Ended:
        """`celc run` of a text, which may differ from that of its file."""
        of_file = project.words_for_run(self._given, file)
        with TemporaryDirectory() as folder:
            written = Path(folder, file.name)
            written.write_text(text, encoding="utf-8")
            return run(["run", str(written), *self.events(file), *of_file, *words])
