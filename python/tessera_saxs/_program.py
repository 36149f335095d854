"""The program `tessera` as a child process, with its progress line in a
terminal, a notebook or a function."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from typing import Any, Callable, Optional, Union

from ._library import (ConfigError, DataError, InternalError, Interrupted,
                       MissingFileError, StorageError, TesseraError,
                       UsageError, program)

#: False: silent. True: the program's line, in a terminal or notebook. A
#: function is called with each new line; a true result stops the program.
Progress = Union[bool, Callable[[str], Any]]
Show = Callable[[str], Any]

_ERRORS: dict[int, type[TesseraError]] = {
    64: UsageError, 65: DataError, 66: MissingFileError, 70: InternalError,
    74: StorageError, 78: ConfigError}
INTERRUPTED = 75


def execute(arguments: list[str], progress: Progress = False) -> str:
    """Runs the program until it ends, and returns its standard output.

    Ctrl-C is passed on: the program writes a checkpoint and ends, which is
    raised as Interrupted. Errors: the exception of the exit status
    (docs/design.md, section 4) with the program's message; status 1, not
    converged, is no error."""
    show, is_live = _shower(progress)
    # The program redraws its progress line on a terminal alone.
    reader, writer = os.openpty() if is_live else os.pipe()
    messages = bytearray()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([program(), *arguments], stdout=out,
                                 stderr=writer, stdin=subprocess.DEVNULL)
        os.close(writer)
        try:
            while True:
                try:
                    _follow(reader, messages, show, child)
                    status = child.wait()
                    break
                except KeyboardInterrupt:
                    child.send_signal(signal.SIGINT)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        finally:
            os.close(reader)
        out.seek(0)
        result = out.read().decode(errors="replace")
    if status not in (0, 1):
        raise _error(status, messages.decode(errors="replace"))
    return result


def read_json(arguments: list[str]) -> dict[str, Any]:
    """The JSON object that a command prints."""
    result: dict[str, Any] = json.loads(execute([*arguments, "--json"]))
    return result


def _follow(reader: int, messages: bytearray, show: Optional[Show],
            child: "subprocess.Popen[bytes]") -> None:
    """Reads what the child writes to stderr until the child closes it."""
    while True:
        try:
            chunk = os.read(reader, 4096)
        except OSError:  # of a terminal whose other side is closed
            chunk = b""
        if not chunk:
            return
        messages += chunk
        if show is not None and show(chunk.decode(errors="replace")):
            child.send_signal(signal.SIGINT)


def _error(status: int, messages: str) -> BaseException:
    """The exception of an exit status, with the last message."""
    lines = _lines(messages)
    start = max([i for i, line in enumerate(lines)
                 if line.startswith("tessera ")], default=0)
    message = re.sub(r"^tessera \w+: ", "", "\n".join(lines[start:]))
    if status == INTERRUPTED:
        return Interrupted(message)
    if status < 0:
        message = f"{signal.Signals(-status).name}: {message}"
    return _ERRORS.get(status, TesseraError)(message)


def _shower(progress: Progress) -> "tuple[Optional[Show], bool]":
    """The function that shows what the program writes, and whether it needs a
    line that is redrawn."""
    if callable(progress):
        def call(chunk: str, function: Callable[[str], Any] = progress) -> bool:
            return any([function(line) for line in _lines(chunk)])

        return call, True
    if not progress or sys.stderr is None:
        return None, False
    if "ipykernel" in sys.modules:
        return _notebook_bar(), True
    return _terminal, sys.stderr.isatty()


def _lines(chunk: str) -> list[str]:
    return [line for line in map(str.strip, re.split(r"[\r\n]+", chunk))
            if line]


def _terminal(chunk: str) -> None:
    sys.stderr.write(chunk)
    sys.stderr.flush()


def _notebook_bar() -> Show:
    import html

    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)

    def show(chunk: str) -> None:
        for line in _lines(chunk)[-1:]:
            percent = re.search(r"(\d+) %", line)
            value = f'value="{percent[1]}"' if percent else ""
            handle.update(HTML(f'<progress max="100" {value}></progress> '
                               f"<code>{html.escape(line)}</code>"))

    return show
