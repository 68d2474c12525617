"""What the commands share: streams, files written whole, notices on stderr, exit statuses."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pqcota_provision._version import __version__
from pqcota_provision.errors import PROBLEMS_SHOWN, InputUnreadable, OutputClosed, OutputFailed, PqcotaError
from pqcota_provision.text import printable, quote

if TYPE_CHECKING:
    from pqcota_provision.plan.notices import Notice

DONE = 0
REFUSED = 1
USAGE = 2
BLANKS = 3
INTERRUPTED = 130

STANDARD_STREAM = "-"
MAX_INPUT_BYTES = 1 << 28

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def version_option(command: str) -> Callable[[Decorated], Decorated]:
    """Return the ``--version`` option of a command."""
    return click.version_option(__version__, prog_name=command, message="%(prog)s %(version)s")


def epilog(variables: Mapping[str, str], statuses: Mapping[int, str]) -> str:
    """Return the end of a help text: the environment variables a command reads and its exit statuses."""
    width = max(map(len, variables), default=0)
    lines = ["\b", "Environment:"] if variables else []
    lines += [f"  {name.ljust(width)}  {meaning}" for name, meaning in variables.items()]
    if variables:
        lines.append("")
    lines += ["\b", "Exit status:", *(f"  {status}  {meaning}" for status, meaning in statuses.items())]
    return "\n".join(lines)


def run(command: click.Command, argv: Sequence[str] | None) -> int:
    """Run a click command whose callback returns its exit status; no error of a user ends in a traceback."""
    name = command.name or "pqcota"
    gc.enable()
    try:
        status = command.main(args=None if argv is None else list(argv), prog_name=name, standalone_mode=False)
        return status if isinstance(status, int) else DONE
    except click.UsageError as error:
        say(name, f"{printable(error.format_message())} Run '{name} --help' for what it accepts.")
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        say(name, "interrupted; nothing was written")
        return INTERRUPTED
    except PqcotaError as error:
        report_error(name, error)
        return error.exit_status
    except MemoryError:
        say(name, "the machine has too little memory for this input")
        return REFUSED


def say(command: str, sentence: str) -> None:
    """Print one line on stderr under the command's name; a closed stderr is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(f"{command}: {sentence}", file=sys.stderr, flush=True)


def report_error(command: str, error: PqcotaError) -> None:
    """Print an error on stderr: one line for one problem, else a line a problem, then what to do next."""
    if len(error.problems) == 1:
        say(command, f"{error.problems[0]}. {error.remedy}".rstrip())
        return
    for problem in error.problems[:PROBLEMS_SHOWN]:
        say(command, f"{problem}.")
    if len(error.problems) > PROBLEMS_SHOWN:
        say(command, f"and {len(error.problems) - PROBLEMS_SHOWN} more problems of this kind.")
    if error.remedy:
        say(command, error.remedy)


def report_notices(command: str, notices: Iterable[Notice]) -> None:
    """Print each notice on one line of stderr."""
    for notice in notices:
        about = f" action {quote(notice.action)}" if notice.action else ""
        about += f" on {printable(notice.node)}" if notice.node else ""
        say(command, f"{notice.kind.value} {notice.id.value}{about}: {notice.sentence} {notice.remedy}")


def environment(name: str) -> str:
    """Return an environment variable, trimmed; unset and empty are the same."""
    return os.environ.get(name, "").strip()


def read_input(path: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``; raises InputUnreadable."""
    shown = "standard input" if path == STANDARD_STREAM else quote(path)
    try:
        if path == STANDARD_STREAM:
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError, AttributeError) as error:
        raise InputUnreadable(f"{shown} cannot be read: {_reason(error)}") from None
    if len(data) > MAX_INPUT_BYTES:
        raise InputUnreadable(
            f"{shown} is larger than {MAX_INPUT_BYTES >> 20} MiB, which is no plan", remedy="Check the path."
        )
    return data


def write_output(parts: Iterable[str]) -> None:
    """Write the product to standard output, whole; raises OutputFailed, or OutputClosed if nobody reads it any more."""
    try:
        for part in parts:
            sys.stdout.buffer.write(part.encode("utf-8"))
        sys.stdout.buffer.flush()
    except (OSError, ValueError, AttributeError) as error:
        silence_stdout()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise OutputClosed("standard output was closed before all of it was written") from None
        raise OutputFailed(f"standard output cannot be written: {_reason(error)}") from None


def silence_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush fails in silence."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


class StagedFiles:
    """Files that appear whole and together at the end, or not at all."""

    def __init__(self) -> None:
        self._staged: list[tuple[str, str]] = []
        self._direct: list[tuple[str, tuple[str, ...]]] = []

    def add(self, path: str, parts: Iterable[str]) -> None:
        """Write the text beside its target; raises OutputFailed, naming the target."""
        import tempfile

        try:
            target = os.path.realpath(path)
            mode = self._mode_of(target)
            if mode is not None and not stat.S_ISREG(mode):
                if stat.S_ISDIR(mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                self._direct.append((path, tuple(parts)))
                return
            handle, temporary = tempfile.mkstemp(prefix=".pqcota-", dir=os.path.dirname(target))
            self._staged.append((temporary, target))
            with open(handle, "wb") as file:
                file.writelines(part.encode("utf-8") for part in parts)
                file.flush()
                os.fchmod(file.fileno(), stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
                os.fsync(file.fileno())
        except (OSError, ValueError) as error:
            raise OutputFailed(f"{quote(path)} cannot be written: {_reason(error)}") from None

    @staticmethod
    def _mode_of(path: str) -> int | None:
        try:
            return os.stat(path).st_mode
        except FileNotFoundError:
            return None

    def commit(self) -> None:
        """Put every staged file in its place."""
        try:
            for path, parts in self._direct:
                with open(path, "wb") as file:
                    file.writelines(part.encode("utf-8") for part in parts)
            while self._staged:
                os.replace(*self._staged[0])
                del self._staged[0]
        except OSError as error:
            raise OutputFailed(f"a file could not be put in its place: {_reason(error)}") from None

    def discard(self) -> None:
        """Remove what was staged and not committed."""
        for temporary, _ in self._staged:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        self._staged.clear()


@contextlib.contextmanager
def staged_files() -> Iterator[StagedFiles]:
    """Yield StagedFiles that are discarded unless committed."""
    files = StagedFiles()
    try:
        yield files
    finally:
        files.discard()


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def _reason(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else printable(str(error))
