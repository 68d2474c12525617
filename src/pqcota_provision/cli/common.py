"""What the commands share: help, streams, notices on stderr, exit statuses."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

import click

from pqcota_provision._version import __version__
from pqcota_provision.errors import (
    InputUnreadable,
    OutputClosed,
    OutputFailed,
    PqcotaError,
    UsageProblem,
)
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

_PIECE = 1 << 18

# click keeps two columns free of the 80 it fills at most.
_HELP_WIDTH = 78
_EPILOG_INDENT = 2

# A private key, and a DSN with a password: what a message would repeat where one stands in the wrong place.
_SECRET = re.compile(r"[A-Za-z0-9+/]{86}==|^postgres(?:ql)?://[^@]*:[^@]*@|\b(?:ssl)?password\s*=", re.IGNORECASE)
_DSN_OPTION = "--dsn"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def version_option(command: str) -> Callable[[Decorated], Decorated]:
    """Return the ``--version`` option of a command."""
    return click.version_option(__version__, prog_name=command, message="%(prog)s %(version)s")


def epilog(variables: Mapping[str, str], statuses: Mapping[int, str]) -> str:
    """Return the end of a help text: the environment variables a command reads and its exit statuses."""
    lines = []
    for title, entries in (
        ("Environment:", variables),
        ("Exit status:", {str(key): statuses[key] for key in statuses}),
    ):
        if entries:
            width = max(map(len, entries))
            # click rewraps no paragraph that begins with this mark.
            lines += ["\b", title]
            lines += [line for name in entries for line in _hanging(f"  {name.ljust(width)} ", entries[name])]
            lines.append("")
    return "\n".join(lines[:-1])


def _hanging(lead: str, text: str) -> list[str]:
    """Return words on lines of the width of a help text, the first after the lead and the others below them."""
    lines = [lead]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > _HELP_WIDTH - _EPILOG_INDENT:
            lines.append(" " * len(lead))
        lines[-1] += f" {word}"
    return lines


def help_text(command: click.Command, *subcommands: str) -> str:
    """Return what ``--help`` prints on a terminal of 80 columns, whatever the terminal; the docs show this."""
    context = click.Context(command, info_name=command.name, terminal_width=_HELP_WIDTH)
    for name in subcommands:
        if not isinstance(command, click.Group):
            raise TypeError(f"{command.name} has no subcommands")
        command = command.commands[name]
        context = click.Context(command, info_name=name, parent=context)
    return command.get_help(context) + "\n"


def run(command: click.Command, argv: Sequence[str] | None, *, collect_garbage: bool = True) -> int:
    """Run a click command whose callback returns its exit status; no error of a user ends in a traceback.

    Looking for garbage only costs time where all that a command makes lives to its end.
    """
    name = command.name or "pqcota"
    if collect_garbage:
        gc.enable()
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        if not isinstance(command, click.Group):
            _refuse_misplaced_secrets(arguments)
        return _invoke(command, name, arguments)
    except click.UsageError as error:
        say(name, f"{printable(error.format_message())} Run '{name} --help' for what it accepts.")
        return USAGE
    except KeyboardInterrupt:
        say(name, "interrupted")
        return INTERRUPTED
    except PqcotaError as error:
        report_error(name, error)
        return error.exit_status
    except MemoryError:
        say(name, "the machine has too little memory for this input")
        return REFUSED
    except OSError as error:
        # Such as what --help meets on a full disk.
        silence(sys.stdout)
        say(name, f"the command cannot go on: {reason_of(error)}")
        return REFUSED
    finally:
        gc.enable()


def _refuse_misplaced_secrets(arguments: Sequence[str]) -> None:
    """Raise UsageProblem for a secret where a command takes none, before any message repeats it (SPEC 11.11)."""
    for previous, argument in zip(("", *arguments), arguments, strict=False):
        if previous != _DSN_OPTION and not argument.startswith(f"{_DSN_OPTION}=") and _SECRET.search(argument):
            raise UsageProblem(
                "an argument holds a private key or a password where none belongs",
                remedy="Keys go in by the environment, a DSN by --dsn. Others may have seen it: make a new one.",
            )


def _invoke(command: click.Command, name: str, arguments: list[str]) -> int:
    """Do what click's own main does, but leave interrupts and failing streams to the caller."""
    completion_variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    if instruction := os.environ.get(completion_variable):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, name, completion_variable, instruction)
    try:
        with command.make_context(name, arguments) as context:
            status = command.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return status if isinstance(status, int) else DONE


def say(command: str, sentence: str) -> None:
    """Print one line on stderr under the command's name; a stderr that is closed or broken is no reason to fail."""
    if sys.stderr is None:
        # print would fall back to standard output.
        return
    try:
        print(f"{command}: {sentence}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        silence(sys.stderr)


def report_error(command: str, error: PqcotaError) -> None:
    """Print an error on stderr: one line for one problem, else a line a problem, then what to do next."""
    if len(error.problems) == 1:
        say(command, f"{error.problems[0]}. {error.remedy}".rstrip())
        return
    for problem in error.problems[: error.problems_shown]:
        say(command, f"{problem}.")
    if error.problems_shown is not None and len(error.problems) > error.problems_shown:
        say(command, f"and {len(error.problems) - error.problems_shown} more problems of this kind.")
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
    """Return the bytes of a file, or of standard input for ``-``; raises InputUnreadable or UsageProblem."""
    if not path:
        raise UsageProblem("the name of the plan is empty", remedy="Name a file, or pass - to read standard input.")
    shown = "standard input" if path == STANDARD_STREAM else quote(path)
    try:
        if path == STANDARD_STREAM:
            data = _open_stream(sys.stdin).read(MAX_INPUT_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputUnreadable(f"{shown} cannot be read: {reason_of(error)}") from None
    if len(data) > MAX_INPUT_BYTES:
        raise InputUnreadable(
            f"{shown} is larger than {MAX_INPUT_BYTES >> 20} MiB, which is no plan", remedy="Check the path."
        )
    return data


def write_output(parts: Iterable[str]) -> None:
    """Write the product to standard output, whole; raises OutputFailed, or OutputClosed if nobody reads it any more."""
    try:
        stream = _open_stream(sys.stdout)
        write_all(stream, parts)
        stream.flush()
    except (OSError, ValueError) as error:
        silence(sys.stdout)
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise OutputClosed("standard output was closed before all of it was written") from None
        raise OutputFailed(f"standard output cannot be written: {reason_of(error)}") from None


def write_all(stream: IO[bytes], parts: Iterable[str]) -> None:
    """Write text as UTF-8, in large pieces and to its end; raises OSError.

    Standard output without a buffer (PYTHONUNBUFFERED) may take less than it is given, and says so in passing.
    """
    for piece in _pieces(parts):
        rest = memoryview(piece)
        while rest:
            taken = stream.write(rest)
            if not taken:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            rest = rest[taken:]


def _pieces(parts: Iterable[str]) -> Iterator[bytes]:
    pending: list[str] = []
    size = 0
    for part in parts:
        pending.append(part)
        size += len(part)
        if size >= _PIECE:
            yield "".join(pending).encode("utf-8")
            pending, size = [], 0
    yield "".join(pending).encode("utf-8")


def _open_stream(stream: TextIO | None) -> BinaryIO:
    """Return the bytes behind a standard stream, which is None where the process was started without it."""
    if stream is None:
        raise ValueError("it is closed")
    return stream.buffer


def silence(stream: TextIO | None) -> None:
    """Point a stream that failed at nothing, so that the interpreter's last flush of it succeeds."""
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def reason_of(error: Exception) -> str:
    """Return why an input or output failed, as a clause."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return printable(str(error))
