"""The program `tessera` as a child process, with its progress line."""
from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Union

from ._library import ERRORS, Interrupted, TesseraError, need, program

Progress = Union[bool, Callable[[str], Any]]

# Exit status (docs/design.md, section 4) to status of tessera.h. Exit status 1,
# not converged, is no error.
_STATUS = {64: 2, 65: 3, 66: 4, 74: 9, 78: 12}
_INTERRUPTED = (75, -signal.SIGINT)


def execute(command: list[str], progress: Progress = False, **options: Any
            ) -> str:
    """Standard output of a command. An option None or False is not given, a
    mapping is repeated as KEY=VALUE. Ctrl-C is passed on, and the program ends
    with a checkpoint: Interrupted."""
    words = [program(), *command]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, item in value.items():
                item = item if isinstance(item, str) else json.dumps(item)
                words += [option, f"{key}={item}"]
        elif value is not None and value is not False:
            words += [option] if value is True else [option, str(value)]
    show, is_stopping = _shower(progress), False
    # The program redraws its progress line on a terminal alone.
    is_live = show is not None and (show is not _write or sys.stderr.isatty())
    reader, writer = os.openpty() if is_live else os.pipe()
    # If this process is killed, the pipe to the program ends, and so does the
    # program, with a checkpoint.
    with tempfile.TemporaryFile() as out, os.fdopen(reader, "rb", 0) as stream, \
            subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=writer,
                env={**os.environ, "TESSERA_STOP_AT_EOF": "1"}) as child:
        os.close(writer)
        messages = ""
        try:
            while child.returncode is None:
                try:
                    while chunk := _read(stream):
                        messages = messages[-9999:] + chunk
                        if show and show(chunk) and not is_stopping:
                            is_stopping = True  # a second signal would kill
                            os.kill(child.pid, signal.SIGINT)
                    child.wait()
                except KeyboardInterrupt:
                    if child.returncode is None:
                        os.kill(child.pid, signal.SIGINT)
        finally:
            if child.returncode is None:  # the function of the caller failed
                child.terminate()
                child.wait()
        if child.returncode not in (0, 1):
            raise _error(child.returncode, _lines(messages))
        out.seek(0)
        return out.read().decode(errors="replace")


def execute_json(*arguments: Any, **options: Any) -> dict[str, Any]:
    """The JSON object that a command prints."""
    return dict(json.loads(execute(*arguments, json=True, **options)))


def _read(stream: Any) -> str:
    """What the child wrote to stderr; empty: the child closed it."""
    try:
        return str(stream.read(4096), errors="replace")
    except OSError:  # of a terminal whose other side is closed
        return ""


def _error(status: int, lines: list[str]) -> BaseException:
    """The exception of an exit status, with the last message."""
    start = max([i for i, line in enumerate(lines)
                 if re.match(r"tessera \w+: ", line)], default=-1)
    message = re.sub(r"^tessera \w+: ", "", "\n".join(lines[start:]))
    if status in _INTERRUPTED:
        stop = Interrupted(message)
        folder = message.partition("tessera resume ")[2]
        stop.folder = Path(shlex.split(folder)[0]) if folder else None
        return stop
    if status < 0:
        message = f"ended by {signal.Signals(-status).name}"
    return ERRORS.get(_STATUS.get(status, 0), TesseraError)(message)


def _lines(chunk: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\r\n]+", chunk)
            if line.strip()]


def _write(chunk: str) -> None:
    sys.stderr.write(chunk)
    sys.stderr.flush()


def _shower(progress: Progress) -> Optional[Callable[[str], Any]]:
    """A function that shows what the program writes; true: stop."""
    if callable(progress):
        call = progress
        return lambda chunk: any([call(line) for line in _lines(chunk)])
    if not progress or sys.stderr is None:
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # no notebook: a script, or a terminal
        return _write
    ipython: Any = need("IPython.display", "a bar in a notebook").display
    handle = ipython.display(ipython.HTML(""), display_id=True)

    def show(chunk: str) -> None:
        for line in _lines(chunk)[-1:]:
            percent = re.match(r"[\w-]+ +(\d+) %", line)
            bar = f"<progress max=100 value={percent[1]}>" if percent else ""
            handle.update(ipython.HTML(
                f"{bar}</progress> <code>{html.escape(line)}</code>"))

    return show
