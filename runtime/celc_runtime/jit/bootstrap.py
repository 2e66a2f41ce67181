"""Loads a query in a process that has nothing of celc installed.

The text of this file is sent with every pickled query and executed there, so it imports only the
standard library. It gets source texts, which become modules in memory. Bytecode, and machine code
of `kernels`, are kept for the next process in a folder of the user (the *cache*), in files that are
named after everything that decides their content.

Rejected: writing the sources to files and importing those. Numba's own cache needs that, but the
cache of `kernels` does not. Then a folder would be needed to run at all, it would have to be filled
without any process seeing half of it, and its files would be compared before each import.

Long: it must be one text that imports nothing else of celc.
"""

import gc
import hashlib
import importlib.abc
import importlib.util
import json
import lzma
import marshal
import os
import pkgutil
import platform
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_PACKAGE = "celc_runtime"
_ENTRY = "celc_query.py"
TOLD = "__celc_told__"
_MOST_BYTES = 512 << 20
_DIGEST = 64
_DAY = 86_400
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def digest_of(files: dict[str, str]) -> str:
    state = hashlib.sha256()
    for name in sorted(files):
        for part in (name, files[name]):
            data = part.encode("utf-8")
            state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


# --- the cache ------------------------------------------------------------------------------------


@cache
def cache_root() -> Path | None:
    """The folder of the cache, which belongs to this user or to root.

    CELC_CACHE_DIR; else below NUMBA_CACHE_DIR; else in the user's cache folder; else a folder of
    the user in the folder for temporary files. None, with one warning, if none of them can be used:
    then everything works, but each process compiles again.
    """
    problems = []
    for folder in _candidates():
        problem = _problem_with(folder)
        if problem is None:
            return folder
        problems.append(problem)
    warn_not_kept("; ".join(problems))
    return None


def _candidates() -> Iterator[Path]:
    """Folders in the order of preference; CELC_CACHE_DIR and NUMBA_CACHE_DIR exclude all others."""
    own = f"celc-{os.getuid()}" if hasattr(os, "getuid") else "celc"
    if os.environ.get("CELC_CACHE_DIR"):
        yield Path(os.environ["CELC_CACHE_DIR"]).absolute()
        return
    if os.environ.get("NUMBA_CACHE_DIR"):
        # Other users may share that folder, as Numba allows.
        yield Path(os.environ["NUMBA_CACHE_DIR"]).absolute() / own
        return
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]).absolute() / "celc"
    else:
        with suppress(RuntimeError):  # $HOME is not set, and the system knows no user of this id
            yield Path.home().absolute() / ".cache" / "celc"
    yield Path(tempfile.gettempdir()).absolute() / own


def _problem_with(folder: Path) -> str | None:
    """Why a folder cannot be used; None if it can. A missing folder is made.

    Code is loaded from it. So no other user may be able to put a file there, or to replace the
    folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat() if folder.parent == Path(tempfile.gettempdir()) else folder.stat()
        if not stat.S_ISDIR(status.st_mode):
            return f"{folder} is not a folder"
        problem = _access_of_others(folder, status) or _problem_on_the_way_to(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError: links form a cycle
        return str(error)
    if problem is None and not os.access(folder, os.R_OK | os.X_OK):
        return f"{folder} cannot be read"
    return problem


def _access_of_others(path: Path, status: os.stat_result) -> str | None:
    """Why another user can change a file or folder; None if only the administrator can."""
    if not hasattr(os, "getuid"):
        return None
    # Root fills the cache of an image for its user, and can change everything else as well.
    if status.st_uid not in (0, os.getuid()):
        return f"{path} belongs to another user"
    if status.st_mode & 0o022:
        return f"others can write to {path}"
    return None


def _problem_on_the_way_to(folder: Path) -> str | None:
    """Why another user can replace this folder; None if nobody can.

    A user can who may rename a folder on its path, as written or behind its links. In a folder with
    the sticky bit, such as /tmp, only the owner of an entry may rename it. The administrator is
    trusted.
    """
    if not hasattr(os, "getuid"):
        return None
    trusted = (0, os.getuid())
    for place in dict.fromkeys([*folder.parents, folder, *folder.resolve().parents]):
        for status in (place.lstat(), place.stat()):
            if status.st_uid not in trusted:
                return f"{place} belongs to another user, who can replace {folder}"
        if place != folder and status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            return f"others can write to {place}, and so replace {folder}"
    return None


def warn_not_kept(problem: str) -> None:
    """Warn once in a process that compiled code is not kept, with the first reason."""
    # All copies of this file in a process share one mark, so they warn once together. The registry
    # of `warnings` has one mark for each text, and loses them when filters change.
    if vars(warnings).setdefault("__celc_warned__", False):
        return
    vars(warnings)["__celc_warned__"] = True
    warnings.warn_explicit(
        "celc cannot keep compiled code for the next process, which will compile it again: "
        f"{problem} (CELC_CACHE_DIR names a folder for it, to which you alone can write)",
        RuntimeWarning,
        "celc",
        1,
    )


def stored(name: str) -> bytes | None:
    """The content that `store` put under a name; None: there is none that can be trusted."""
    root = cache_root()
    if root is None:
        return None
    path = root / name
    try:
        # Opened first, checked after, so that it is the same file. A pipe cannot block here.
        handle = os.open(path, os.O_RDONLY | _NO_LINK | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or _access_of_others(path, status) is not None:
                return None  # `store` puts another file in its place
            data = stream.read()
    except OSError:
        return None
    digest, content = data[:32], data[32:]
    if hashlib.sha256(content).digest() != digest:
        return None  # as after a crash of the machine; it will be written again
    if time.time() - status.st_mtime > _DAY:
        with suppress(OSError):  # only for `_evict_oldest`
            os.utime(path)
    return content


def store(name: str, content: bytes) -> None:
    """Put content under a name that decides it; no process ever sees a part of it."""
    root = cache_root()
    if root is None:
        return
    _evict_oldest(root)
    try:
        handle, fresh = tempfile.mkstemp(prefix=".new-", dir=root)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(content).digest() + content)
            os.replace(fresh, root / name)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError as problem:
        warn_not_kept(str(problem))


@cache
def stored_kernels() -> frozenset[str]:
    """The names of the kernels that are kept, without their types, when this process first asks."""
    root, names = cache_root(), []
    if root is not None:
        with suppress(OSError):
            names = os.listdir(root)
    return frozenset(name.rpartition("-")[0] for name in names if name.endswith(".kernel"))


@cache
def _evict_oldest(root: Path) -> None:
    """Once in a process that stores: delete the files unused for longest, if there is too much."""
    entries = []
    with suppress(OSError), os.scandir(root) as found:
        for entry in found:
            with suppress(OSError):  # another process deletes files as well
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= _MOST_BYTES:
        return
    for _, size, path in sorted(entries):
        with suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= _MOST_BYTES // 2:
            return


# --- modules out of texts -------------------------------------------------------------------------


@cache
def installed_sources(package: str = _PACKAGE) -> dict[str, str]:
    """The source texts of the runtime that this process would import; empty: it has no texts.

    By their paths in the package, with slashes on any system: `__init__.py`,
    `engine/arena/nodes.py`.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        return {}
    loader: Any = spec.loader
    if hasattr(loader, "sources"):  # a _TextFinder, perhaps of another copy of this file
        known: dict[str, str] = loader.sources(package)
        return known
    if not spec.submodule_search_locations:
        return {}
    location = next(iter(spec.submodule_search_locations))
    if os.path.isdir(location):
        folder = Path(location)
        return {
            path.relative_to(folder).as_posix(): path.read_text("utf-8")
            for path in _modules_in(folder)
        }
    # In an archive, as for `spark-submit --py-files`.
    read = {
        file: reader.get_source(name) if hasattr(reader, "get_source") else None
        for file, name, reader in _archived("", package, spec)
    }
    texts = {file: text for file, text in read.items() if text is not None}
    return texts if len(texts) == len(read) else {}


def _modules_in(folder: Path) -> Iterator[Path]:
    """The source files of a package and of its sub-packages."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py":
            yield path
        elif (path / "__init__.py").is_file():
            yield from _modules_in(path)


def _archived(folder: str, name: str, spec: ModuleSpec) -> Iterator[tuple[str, str, Any]]:
    """For each module of a package in an archive: its path, its full name, its loader.

    folder: the package's own path in the outermost package, with a slash at its end.
    """
    yield f"{folder}__init__.py", name, spec.loader
    for location in spec.submodule_search_locations or ():
        importer: Any = pkgutil.get_importer(location)
        for module in pkgutil.iter_modules([location]):
            full = f"{name}.{module.name}"
            found = importer.find_spec(full)
            if module.ispkg:
                yield from _archived(f"{folder}{module.name}/", full, found)
            else:
                yield f"{folder}{module.name}.py", full, found.loader


class _TextFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports packages and modules from texts, and keeps their bytecode.

    Texts stay as they were given, so that they can be sent on. `sources` and the modules'
    `__celc_text__` return them, and tracebacks show them. If the runtime has another name here,
    only the import statements are compiled with that name (`_code`).
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, str]] = {}
        self._texts: dict[str, dict[str, str]] = {}
        self._packages: dict[str, str] = {}
        self._codes: dict[str, dict[str, CodeType]] = {}

    def add(self, name: str, original: dict[str, str], package: str) -> None:
        """Add a module or package; its imports of the runtime become imports of `package`."""
        self._texts[name] = original
        self._packages[name] = package
        for file in original:
            self._files[_module_name(name, file)] = (name, file)

    def sources(self, name: str) -> dict[str, str]:
        """The texts that a package or module was made of."""
        return self._texts[name]

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A specification, if it is one of these modules."""
        if fullname not in self._files:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self._place(fullname))

    def is_package(self, fullname: str) -> bool:
        return self._files[fullname][1].rpartition("/")[2] == "__init__.py"

    def get_source(self, fullname: str) -> str:
        """The text; tracebacks show lines of it."""
        name, file = self._files[fullname]
        return self._texts[name][file]

    def get_code(self, fullname: str) -> CodeType:
        """The bytecode, from the cache if it is there."""
        name, file = self._files[fullname]
        if name not in self._codes:
            self._codes[name] = self._compiled(name)
        return self._codes[name][file]

    def exec_module(self, module: ModuleType) -> None:
        name, file = self._files[module.__name__]
        module.__dict__["__celc_text__"] = self._texts[name][file]
        super().exec_module(module)

    def _place(self, fullname: str) -> str:
        name, file = self._files[fullname]
        return f"<{name}>/{file}"

    def _compiled(self, name: str) -> dict[str, CodeType]:
        python = f"{importlib.util.MAGIC_NUMBER.hex()}-{sys.flags.optimize}"
        cache_file = f"{name}-{digest_of(self._texts[name])[:32]}.{python}.code"
        known = _codes_in(stored(cache_file))
        if known is not None and known.keys() == self._texts[name].keys():
            return known
        codes = {
            file: _code(text, f"<{name}>/{file}", self._packages[name])
            for file, text in self._texts[name].items()
        }
        store(cache_file, marshal.dumps(codes))
        return codes


def _module_name(outermost: str, file: str) -> str:
    """The full name of the module in a file of a package, or of a generated module."""
    if file == _ENTRY:
        return outermost
    parts = file.removesuffix(".py").split("/")
    return ".".join([outermost, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _code(text: str, place: str, package: str) -> CodeType:
    """The bytecode of a module whose imports of the runtime are imports of `package`.

    The name is changed in the bytecode, in its tables of names. Only an import has a name with a
    dot there, and no text that is compiled here uses the name `celc_runtime` for anything else. A
    query may compare a text with 'from celc_runtime': texts are constants, and stay.

    Rejected: changing the statements in the syntax tree, because the whole tree becomes Python
    objects, which takes three times as long; relative imports, because a generated module, a file
    of the user, cannot have them; a separate `__import__` in the builtins of each module, because
    functions that a pickler takes apart lose it; an alias in `sys.modules` while a module runs,
    because other threads see it, and functions that import later do not.
    """
    code = compile(text, place, "exec", dont_inherit=True)
    return code if package == _PACKAGE else _renamed(code, package)


def _renamed(code: CodeType, package: str) -> CodeType:
    """The same bytecode with its functions and classes, but importing from `package`."""
    names = tuple(
        (
            package + name.removeprefix(_PACKAGE)
            if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
            else name
        )
        for name in code.co_names
    )
    constants = tuple(
        _renamed(constant, package) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_names=names, co_consts=constants)


def _codes_in(data: bytes | None) -> dict[str, CodeType] | None:
    """The bytecode that `_TextFinder` stored; None: there is none, or something else."""
    if data is None:
        return None
    try:
        codes = marshal.loads(data)
    except (EOFError, ValueError, TypeError):
        return None  # it will be written again
    whole = isinstance(codes, dict) and all(isinstance(code, CodeType) for code in codes.values())
    return codes if whole else None


_FINDER = _TextFinder()


def _imported(name: str, original: dict[str, str], package: str) -> ModuleType:
    if name not in sys.modules:
        finder = _FINDER  # another thread may run this file again meanwhile, which makes a new one
        finder.add(name, original, package)
        if finder not in sys.meta_path:
            sys.meta_path.append(finder)
    # Python's own import, because it waits for another thread that imports the same module.
    return importlib.import_module(name)


def _check_compiler() -> None:
    """Raises ModuleNotFoundError where Numba cannot be imported, which is only needed later."""
    for package in ("numba", "llvmlite"):
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def _not_installed(problem: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error for a package that is not installed, with the machine and what to do."""
    package = str(problem.name).partition(".")[0]
    return ModuleNotFoundError(
        f"a query of celc needs the package {package!r} wherever it runs, and the Python of this "
        f"worker cannot import it: {sys.executable} on {platform.node()}. Install it there "
        f"({sys.executable} -m pip install {package}), or set PYSPARK_PYTHON to a Python that has "
        "numba, numpy and pyarrow",
        name=problem.name,
        path=problem.path,
    )


def package_name(runtime: dict[str, str]) -> str:
    """The name of the package that is made of these source texts of the runtime.

    It contains a digest of them. So other versions of the runtime in a process are other packages,
    and the same texts are one package, wherever they came from.
    """
    return f"{_PACKAGE}_{digest_of(runtime)[:16]}"


def provide(runtime: dict[str, str]) -> ModuleType:
    """The package that is made of these source texts of the runtime, imported."""
    package = package_name(runtime)
    return _imported(package, runtime, package)


@cache
def _unpacked(packed: bytes) -> dict[str, str]:
    texts: dict[str, str] = json.loads(lzma.decompress(packed[_DIGEST:]))
    return texts


@cache
def _is_installed(digest: bytes) -> bool:
    """Whether this process would import the very runtime that has this digest."""
    return digest_of(installed_sources()).encode() == digest


_frozen_modules = 0


def _freeze_in_worker() -> None:
    """Where this is a Python worker of Spark, freeze its objects once modules have come.

    Such a worker collects all garbage after each task, and looks at all objects of its modules
    each time anew: 55 ms of CPU with numba and pandas. Modules live as long as the process. This is
    called when a task begins, right behind that collection, and before the task has objects of its
    own.
    """
    global _frozen_modules
    tasks = sys.modules.get("pyspark.taskcontext")
    if tasks is not None and tasks.TaskContext.get() and len(sys.modules) != _frozen_modules:
        gc.freeze()
        _frozen_modules = len(sys.modules)


# The last function of the file: if it exists, the whole file has run (`shipping._LOAD` tests that).
def restore(text: str | bytes, packed: bytes, options: dict[str, object], query: str) -> object:
    """The query named `query` from its module's text, with its options.

    text: of the module; bytes are the text in the format of lzma.
    packed: the digest of the runtime's modules, then their source texts by name, as JSON in the
    format of lzma; empty for a standalone module, which brings them. A process that already has
    this very runtime uses it. All others use a copy under a name of its own, which no other version
    can clash with.
    """
    if isinstance(text, bytes):
        text = lzma.decompress(text).decode()
    entry = {_ENTRY: text}
    package = _PACKAGE
    try:
        if packed and not _is_installed(packed[:_DIGEST]):
            package = provide(_unpacked(packed)).__name__
        name = f"celc_query_{digest_of({**entry, 'package': package})[:16]}"
        module = _imported(name, entry, package)
        _check_compiler()
    except ModuleNotFoundError as problem:
        raise _not_installed(problem) from problem
    module.__dict__[TOLD] = True  # the sender of the query has been warned
    _freeze_in_worker()
    return module.__dict__["QUERIES"][query].with_options(**options)
