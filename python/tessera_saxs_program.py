"""The command `tessera` of the wheel. A module of its own: importing the
package would load numpy at each start."""
import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Replaces this process by the program, which so gets the signals and gives
    the exit status; `tessera gui` opens the window."""
    spec = find_spec("tessera_saxs")
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).parent
    if sys.argv[1:2] == ["gui"]:
        try:
            from tessera_saxs import gui
        except ModuleNotFoundError as missing:
            sys.exit(f"tessera gui: no module '{missing.name}': "
                     "pip install 'tessera-saxs[gui]'")
        sys.exit(gui.main(sys.argv[2:]))
    remark = runpy.run_path(str(package / "_devices.py"))["prepare"]()
    if remark:
        print("tessera:", remark, file=sys.stderr)
    program = str(package / "_native/bin/tessera")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tessera: {program}: {error.strerror}")
