"""``tessera gui``: a window in the browser, from a model and a curve to an
answer. The page drives the program and computes nothing.

A project is a folder of ``tessera solve`` (docs/files.md) that also holds
``input/`` (uploads), ``fit/`` (of ``profile``), ``models/`` (of ``export``) and
``project.json`` (settings). These files are the whole state: a browser or a
window that opens later continues from there."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import secrets
import shlex
import time
from pathlib import Path
from typing import Any, Optional

from nicegui import app, background_tasks, native, ui
from starlette.requests import HTTPConnection
from starlette.responses import (FileResponse, PlainTextResponse,
                                 RedirectResponse, Response)

from ._library import Interrupted, TesseraError, program
from ._program import execute

projects: dict[str, Project] = {}  # in the current folder, by name


def safe_name(name: str) -> str:
    """A plain file name, neither hidden nor an option, from any name."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", re.split(r"[/\\]", name)[-1])
    return name[-80:].lstrip("._-") or "file"


def role(name: str) -> str:
    """What a file is, by its ending."""
    end = re.search(r"\.(?:(pdb|ent|cif|mmcif)|(json)|mrc|map|ccp4)(\.gz)?$",
                    name.lower())
    return "curve" if not end else "model" if end[1] else (
        "pae" if end[2] else "map")


async def tessera(*words: str, listen: Any = None) -> tuple[str, str]:
    """Output of the program, "" if it failed; its warnings or error."""
    said: list[str] = []
    try:
        out = await asyncio.to_thread(execute, [*words], listen or said.append)
        return out, "\n".join(said)
    except (TesseraError, Interrupted) as error:
        return "", str(error).partition("\n'tessera ")[0]  # its usage


class Project:
    """A folder, and what the program does there."""

    def __init__(self, name: str):
        self.name, self.folder = name, Path(name)
        self.config = self.folder / "solve.yaml"
        for folder in ("input", "fit", "models"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self.settings: dict[str, Any] = {  # d2o: of neutron curves, by path
            "states": 3, "minutes": 60, "resolution": None, "sample": False,
            "d2o": {}, "parts": None, **self.read("project.json")}
        self.fits: list[dict[str, Any]] = []  # as profile prints them
        self.found: dict[str, Any] = {}  # as init prints it
        self.remarks = ""  # of init
        self.line = self.end = ""  # of solve: progress; why not done, if ended
        self.messages: list[str] = []  # of solve
        self.history: list[list[Any]] = []  # seconds, chi2, R-hat, ESS
        self.task: Optional[asyncio.Task[None]] = None
        self.stop, self.lock = False, asyncio.Lock()

    def read(self, name: str) -> Any:
        """A JSON file of the folder; {} if there is none."""
        file = self.folder / name
        return json.loads(file.read_text()) if file.exists() else {}

    def save(self) -> None:
        new = self.folder / "project.json.new"
        new.write_text(json.dumps(self.settings))
        new.replace(self.folder / "project.json")

    def inputs(self, kind: str = "") -> list[str]:
        """Paths of uploads, all or of one role."""
        return sorted(str(path) for path in (self.folder / "input").iterdir()
                      if kind in ("", role(path.name)))

    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()

    def is_locked(self) -> bool:
        """A run keeps the files and parts that it began with."""
        return self.is_running() or any(
            path.name.isdigit() for path in self.folder.iterdir())

    def state(self) -> str:
        """What a page shows, as JSON."""
        verdict = self.read("verdict.json")
        if not Path(verdict.get("report") or "-").exists():  # not yet written
            verdict["report"] = None
        return json.dumps({
            "inputs": [{"path": p, "role": role(p)} for p in self.inputs()],
            "folder": str(self.folder.resolve()), "verdict": verdict,
            "running": self.is_running(), "locked": self.is_locked(),
            "busy": self.lock.locked(), **{name: vars(self)[name] for name in (
                "name", "settings", "fits", "found", "remarks", "end", "line",
                "messages", "history", "stop")}})

    def remove(self, path: str) -> None:
        """Parts that were corrected stay so until the model changes."""
        Path(path).unlink(missing_ok=True)
        if role(path) != "curve":
            self.settings["parts"] = None

    def data(self) -> list[str]:
        """Model, curves and map, as init and solve take them."""
        words, r = self.inputs("model"), self.settings["resolution"]
        for curve in self.inputs("curve"):
            d2o = self.settings["d2o"].get(curve)
            words += [curve] if d2o is None else ["--sans", f"{curve}={d2o}"]
        for path in self.inputs("map"):
            words += ["--map", path] + (["-r", str(r)] if r else [])
        return words

    async def look(self) -> None:
        """Fits the model as it is, and finds its parts, which a run keeps."""
        self.save()
        async with self.lock:
            out, self.remarks, self.fits = "", "", []
            for model in self.inputs("model"):
                for curve in self.inputs("curve"):
                    self.fits.append(await self.fit(model, curve))
                words = [] if self.is_locked() else ["-o", str(self.config)]
                for pae in self.inputs("pae"):
                    words += ["--pae", pae]
                out, self.remarks = await tessera(
                    "init", "-q", "--json", *words, *self.data())
            self.found = json.loads(out or "{}")
            parts = self.settings["parts"]
            if not out and not self.is_locked():
                self.config.unlink(missing_ok=True)
            elif parts and not self.is_locked():
                self.settings["parts"] = None
                self.remarks += await self.set_parts(parts)

    async def fit(self, model: str, curve: str) -> dict[str, Any]:
        name, d2o = f"fit/{Path(curve).name}", self.settings["d2o"].get(curve)
        neutrons = [] if d2o is None else ["--radiation", "neutron", "--d2o",
                                           str(d2o)]
        out, said = await tessera(
            "profile", "-q", "--json", model, "--data", curve, "-o",
            f"{self.name}/{name}.fit", *neutrons)
        found = json.loads(out or '{"structures": [{}]}')
        return {**found, **found["structures"][0], "said": said,
                "curve": curve, "picture": f"{self.name}/{name}.svg"}

    async def set_parts(self, parts: list[list[str]]) -> str:
        """Flexible and fixed ranges, into solve.yaml, unless refused: why."""
        old = self.config.read_text()
        new = re.sub(r"^  (flexible|fixed|frozen):.*\n(    .*\n)*", "", old,
                     flags=re.M)
        keys = "  flexible: {}\n  fixed: {}\n  frozen: {}\n".format(
            *map(json.dumps, (*parts, not parts[0])))
        new = new.replace("structure:\n", "structure:\n" + keys)
        self.config.write_text(new)
        out, refusal = await tessera("check", "-q", str(self.config))
        if not out:
            self.config.write_text(old)
            return refusal
        self.settings["parts"] = parts
        return ""

    async def solve(self, states: float, minutes: float, more: bool) -> None:
        """Begins or continues; more: first with the draws that lack."""
        s = self.settings
        s.update(states=states, minutes=minutes)
        first = shlex.split(self.read("verdict.json")["more"]) if more else []
        s["sample"] |= "--sample" in first
        self.save()
        solve = ["solve", *self.data(), "-o", self.name, "--states",
                 f"{states:.0f}", "--time-limit", str(60 * minutes),
                 *["--sample"] * s["sample"]]
        self.end, self.stop, self.history = "", False, []
        if first[1:2] == ["resume"]:
            _, self.end = await tessera(*first[1:], listen=self.listen)
        if not self.end:
            _, self.end = await tessera(*solve, listen=self.listen)
        self.line = ""

    def listen(self, line: str) -> bool:
        """Takes a line of solve. Returns whether to stop it."""
        past, now = self.history, time.monotonic()
        if not re.search(r"steps/s|\[#", line):
            self.messages = [*self.messages[-49:], line]
            return self.stop
        self.line = line
        if not past or now - past[-1][0] > max(1, (now - past[0][0]) / 300):
            found = [re.search(rf"{word} ([\d.e+]+)", line)
                     for word in ("chi2", "R-hat", "ESS")]
            self.history = [*past, [now, *(f and float(f[1]) for f in found)]]
        return self.stop


def guard(inner: Any, token: str, cookie: str) -> Any:
    """An application that answers only browsers that came with the token,
    which a cookie then keeps, and no page of another site."""
    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        answer = inner
        if scope["type"] != "lifespan":
            request = HTTPConnection(scope)
            own = f"http://{request.headers.get('host')}"
            came, has = (secrets.compare_digest(text.encode(), token.encode())
                         for text in (request.query_params.get("token", ""),
                                      request.cookies.get(cookie, "")))
            if came:
                answer = RedirectResponse(request.url.path)
                answer.set_cookie(cookie, token, httponly=True,
                                  samesite="strict")
            elif not has or request.headers.get("origin", own) != own:
                answer = PlainTextResponse(
                    "Open the address that tessera gui printed.", 403)
        await answer(scope, receive, send)
    return guarded


def names() -> list[str]:
    """All projects, newest first."""
    files = sorted(Path().glob("*/project.json"), key=os.path.getmtime)
    return [file.parent.name for file in files][::-1]


@app.get("/files/{name}/{path:path}")
def file(name: str, path: str) -> Any:
    """A file of a project: shown if tessera wrote it, else downloaded."""
    folder, whole = Path(name).resolve(), Path(name, path).resolve()
    if not (name in names() and folder in whole.parents and whole.is_file()):
        return Response(status_code=404)
    is_shown = whole.suffix in (".svg", ".html") and (
        folder / "input" not in whole.parents)
    return FileResponse(
        whole, filename=None if is_shown else whole.name, headers={
            "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"})


class Window(ui.element, component="gui.js"):
    """A page on a project or, None, on all of them: gui.js shows and acts."""

    def __init__(self, project: Any) -> None:
        ui.add_css(Path(__file__).with_name("gui.css"))
        ui.colors(primary="#3b6ea5")
        super().__init__()
        self.project = project
        self.on("act", self.act)
        with self:
            ui.upload(label="Drop files here, or press +", multiple=True,
                      auto_upload=True, on_multi_upload=self.take).props(
                          "flat bordered")
        self.show()
        ui.timer(0.5, self.show)

    def show(self) -> None:
        state = self.project.state() if self.project else json.dumps(
            {"folder": str(Path().resolve()), "projects": names()})
        if state != self._props.get("json"):
            self._props["json"] = state
            self.update()

    async def take(self, event: Any) -> None:
        """Saves uploads; a model, map or PAE file replaces the one before."""
        files, p = event.files, self.project
        if p is None:
            first = min(files, key=lambda file: role(file.name) != "model")
            stem = safe_name(first.name).split(".")[0]
            name = next(f"{stem}{end}" for end in ("", *range(-2, -9999, -1))
                        if not Path(f"{stem}{end}").exists())
            p = projects[name] = Project(name)
        if p.is_locked():
            return
        for file in files:
            name = safe_name(file.name)
            for old in p.inputs(role(name)) * (role(name) != "curve"):
                p.remove(old)
            await file.save(p.folder / "input" / name)
        event.sender.reset()
        if p is not self.project:
            ui.navigate.to(f"/project/{p.name}")
        await p.look()

    async def act(self, event: Any) -> None:
        p, (name, *words), said = self.project, event.args, ""
        if name == "solve" and not p.is_running():
            p.task = asyncio.create_task(p.solve(*words))
        elif name == "stop":
            p.stop = True
        elif name == "export":
            run = f"{p.name}/{p.read('verdict.json')['states']}"
            file = f"{p.name}/models/{p.name}-{words[0].replace(':', '-')}.pdb"
            _, said = await tessera("export", "-q", run, "--draws", words[0],
                                      "-o", file)
            ui.download(f"/files/{file}")
        elif p.is_locked():
            said = "The runs of this project use these files and parts."
        elif name == "parts" and words[0]:
            async with p.lock:
                said = await p.set_parts(words[0])
            p.save()
        else:
            if name == "remove" and words[0] in p.inputs():
                p.remove(words[0])
            elif name in p.settings:
                p.settings[name] = words[0]
            await p.look()
        if said:
            ui.notify(said, type="warning", multi_line=True)
        self.show()


@ui.page("/")
@ui.page("/project/{name}")
def page(name: str = "") -> Any:
    if name and name not in names():
        return Response(status_code=404)
    if name and name not in projects:
        projects[name] = Project(name)
        background_tasks.create(projects[name].look())
    Window(projects.get(name))


@app.on_shutdown
async def stop_all() -> None:
    for p in projects.values():
        p.stop = True
        if p.task is not None:
            await p.task


def main(words: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        prog="tessera gui", description="A window in the browser, from a "
        "model and a curve to an answer. No data leave this machine.")
    add = parser.add_argument
    add("folder", nargs="?", default="~/tessera",
        help="of all projects (default ~/tessera)")
    add("--port", type=int, default=0, help="default: any free port")
    add("--no-browser", action="store_true", help="only print the address")
    options = parser.parse_args(words)
    try:
        program()
        folder = Path(options.folder).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        port = native.find_open_port(options.port or 8400, options.port or 9400)
    except (TesseraError, OSError, OverflowError) as error:
        parser.error(str(error))
    token = secrets.token_urlsafe(24)
    app.add_middleware(guard, token=token, cookie=f"tessera-{port}")
    print(f"http://127.0.0.1:{port}/?token={token}\nCtrl-C ends the window.",
          flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        ui.run(host="127.0.0.1", port=port, title="tessera", reload=False,
               show=not options.no_browser and f"/?token={token}",
               show_welcome_message=False)


if __name__ in {"__main__", "__mp_main__"}:
    main()
