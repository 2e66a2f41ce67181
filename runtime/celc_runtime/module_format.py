"""The format of generated modules, and which of them this runtime runs.

A module says its format before it imports anything else of the runtime, so that a module of another
format is refused in words, and not by a name that is missing somewhere. The number is no release's.
`FORMAT` grows when new modules need what older runtimes lack: a name, an argument, a field, another
meaning. `OLDEST` grows when this runtime has no longer what older modules need. So most releases
run the modules of those before them. `tests/fixtures/module_format.txt` has all that modules can
import, as it is in this format; its test says when a number must grow.

Rejected: to compare releases, which refuses modules that would run.
"""

from celc_runtime.version import VERSION

FORMAT = 1
OLDEST = 1


class FormatError(ImportError):
    """A generated module is in a format that this runtime does not run. It says which would."""


def check_format(number: int, written_by: str, module: str) -> None:
    """Refuse the module called `module`, written by celc `written_by` in the format `number`.

    Raises FormatError for a format that this runtime does not run.
    """
    if OLDEST <= number <= FORMAT:
        return
    runs = f"format {FORMAT}" if OLDEST == FORMAT else f"formats {OLDEST} to {FORMAT}"
    told = (
        f"the module {module} was written by celc {written_by} in format {number}, and the runtime "
        f"here, celc-runtime {VERSION}, runs {runs}: "
    )
    if number > FORMAT:
        mend = (
            f"install a newer runtime (pip install 'celc-runtime>={written_by}'), or compile the "
            f"query with celc {VERSION}"
        )
    else:
        mend = (
            f"compile the query anew with celc {VERSION}, by the command at the head of the "
            f"module, or install the runtime of that time (pip install "
            f"'celc-runtime=={written_by}')"
        )
    raise FormatError(told + mend, name=module)
