"""``tessera gui``: a window in the browser, from a model and a curve to an
answer. The page drives the program and computes nothing.

A project is a folder of ``tessera solve`` (docs/files.md) that also holds
``input/`` (uploads), ``fit/`` (of ``profile``), ``models/`` (of ``export``) and
``project.json`` (settings). These files are the whole state: a browser or a
window that opens later continues from there."""
from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import hmac
import json
import os
import re
import secrets
import shlex
import socket
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any, Optional

from ._library import Interrupted, TesseraError, program
from ._program import execute

try:
    import yaml
    from nicegui import app, background_tasks, ui
    from starlette import responses
    from starlette.exceptions import HTTPException
    from starlette.requests import HTTPConnection
except ModuleNotFoundError as missing:
    sys.exit(f"tessera gui: no module '{missing.name}': "
             "pip install 'tessera-saxs[gui]'")

projects: dict[str, Project] = {}  # in the current folder, by name


def safe_name(name: str) -> str:
    """A file name of letters, digits, '.', '_' and '-', neither hidden nor an
    option, from any name that a browser sends."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", re.split(r"[/\\]", name)[-1])
    return name[-80:].lstrip("._-") or "file"


def role(name: str) -> str:
    """What a file is, by its ending."""
    for kind, ends in (("model", "pdb|ent|cif|mmcif"), ("pae", "json"),
                       ("map", "mrc|map|ccp4")):
        if re.search(rf"\.({ends})(\.gz)?$", name.lower()):
            return kind
    return "curve"


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
        self.fits: list[dict[str, Any]] = []
        self.stretches: list[tuple[str, int, int, str]] = []  # as init says
        self.structure: dict[str, Any] = {}  # of solve.yaml
        self.remarks = self.end = ""  # of init; why solve ended, unless done
        self.line, self.messages = "", collections.deque(maxlen=50)  # of solve
        self.checks: dict[str, Any] = {}  # of diagnose
        self.history = collections.deque(maxlen=900)  # seconds, chi2, R-hat
        self.task: Optional[asyncio.Task[None]] = None
        self.stop, self.lock = "", asyncio.Lock()  # stop: "", asked, sent

    def read(self, name: str) -> Any:
        """A JSON file of the folder; {} if there is none."""
        file = self.folder / name
        return json.loads(file.read_text()) if file.exists() else {}

    def save(self) -> None:
        new = self.folder / "project.json.new"
        new.write_text(json.dumps(self.settings))
        new.replace(self.folder / "project.json")

    def runs(self) -> list[str]:
        """Folders of runs, by number of states."""
        return sorted((str(p) for p in self.folder.iterdir()
                       if p.name.isdigit()), key=lambda s: (len(s), s))

    def inputs(self, kind: str = "") -> list[str]:
        """Paths of uploads, all or of one role."""
        return sorted((str(p) for p in (self.folder / "input").iterdir()
                       if kind in ("", role(p.name))),
                      key=lambda path: (role(path) != "model", path))

    def state(self) -> dict[str, Any]:
        """What a page shows."""
        s, verdict = self.settings, self.read("verdict.json")
        if not Path(verdict.get("report") or "-").exists():  # not yet written
            verdict["report"] = None
        return {"inputs": [{"path": p, "role": role(p), "d2o": s["d2o"].get(p)}
                           for p in self.inputs()],
                "structure": self.structure, "verdict": verdict,
                "running": self.is_running(), "locked": self.is_locked(),
                "busy": self.lock.locked(), "runs": self.runs(),
                "messages": list(self.messages), "history": list(self.history),
                "folder": str(self.folder.resolve()),
                "settings": {**s, "d2o": None}, **{k: vars(self)[k] for k in (
                    "name", "fits", "stretches", "remarks", "end", "line",
                    "checks", "stop")}}

    async def add(self, files: list[Any]) -> None:
        """Saves uploads; a model, map or PAE file replaces the one before."""
        for file in files:
            name = safe_name(file.name)
            for old in self.inputs(role(name)) * (role(name) != "curve"):
                self.remove(old)
            await file.save(self.folder / "input" / name)
        self.save()

    def remove(self, path: str) -> None:
        """Parts that were corrected stay so until the model changes."""
        Path(path).unlink(missing_ok=True)
        if role(path) != "curve":
            self.settings["parts"] = None

    async def tessera(self, *words: str, listen: Any = None
                      ) -> tuple[str, str]:
        """Output of the program, "" if it failed; its warnings or error."""
        said: list[str] = []

        def work() -> tuple[str, str]:
            try:
                out = execute(list(words), listen or said.append)
                return out, "\n".join(said)
            except TesseraError as error:
                return "", str(error)
            except Interrupted:
                return "", "Stopped, to be resumed."
        return await asyncio.to_thread(work)

    def data(self) -> list[str]:
        """Model, curves and map, as init and solve take them."""
        words = self.inputs("model")
        for curve in self.inputs("curve"):
            d2o = self.settings["d2o"].get(curve)
            words += [curve] if d2o is None else ["--sans", f"{curve}={d2o}"]
        for path in self.inputs("map"):
            words += ["--map", path]
            if self.settings["resolution"]:
                words += ["-r", str(self.settings["resolution"])]
        return words

    async def look(self) -> None:
        """Fits the model as it is, and finds its parts unless runs exist."""
        self.save()
        async with self.lock:
            models = self.inputs("model")
            self.fits = [await self.fit(models[0], curve)
                         for curve in self.inputs("curve") if models]
            if not self.is_locked():
                pae = [w for p in self.inputs("pae") for w in ("--pae", p)]
                out, self.remarks = await self.tessera(
                    "init", "-q", "-o", str(self.config), *pae, *self.data()
                ) if models else ("", "")
                if not out:
                    self.config.unlink(missing_ok=True)
                elif self.settings["parts"]:
                    await self.set_parts(*self.settings["parts"])
            self.read_parts()

    async def fit(self, model: str, curve: str) -> dict[str, Any]:
        """Of all atoms or, where these are missing, of two bodies a residue."""
        output, d2o = f"fit/{Path(curve).name}", self.settings["d2o"].get(curve)
        words = ["profile", "-q", "--json", model, "--data", curve, "-o",
                 f"{self.name}/{output}.fit"]
        if d2o is not None:
            words += ["--radiation", "neutron", "--d2o", str(d2o)]
        out, said = await self.tessera(*words)
        if not out and d2o is None:
            out, more = await self.tessera(*words, "--bodies", "two")
            said += "\n" + more if out else ""
        found = json.loads(out or "{}")
        return {**found, **found.get("structures", [{}])[0], "curve": curve,
                "said": said, "picture": f"{self.name}/{output}.svg"}

    def read_parts(self) -> None:
        """Stretches as init found them, from the heading of solve.yaml, and
        what is flexible and fixed now."""
        text = self.config.read_text() if self.config.exists() else "{}"
        self.stretches = [
            (c, int(a), int(b or a), what) for c, a, b, what in re.findall(
                r"^#   (\S*):(-?\d+)(?:-(-?\d+))?\s+(.*)", text, re.M)]
        self.structure = yaml.safe_load(text).get("structure", {})

    async def set_parts(self, flexible: list[str], fixed: list[str]) -> str:
        """Returns the message of the program if it refuses, else ""."""
        old = self.config.read_text()
        found = yaml.safe_load(old)
        found["structure"].update(flexible=flexible, frozen=not flexible,
                                  fixed=fixed)
        self.config.write_text(old.partition("seed:")[0]
                               + yaml.safe_dump(found, sort_keys=False))
        out, refusal = await self.tessera("check", "-q", str(self.config))
        if not out:
            self.config.write_text(old)
        self.read_parts()
        return "" if out else refusal

    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()

    def is_locked(self) -> bool:
        """A run keeps the files and parts that it began with."""
        return self.is_running() or bool(self.runs())

    def start(self, wants_more: bool) -> None:
        """Begins or continues solve, or first runs the command by which the
        verdict gets more draws."""
        s = self.settings
        more = self.read("verdict.json")["more"] if wants_more else ""
        s["sample"] = s["sample"] or "--sample" in more
        self.save()
        solve = ["solve", *self.data(), "-o", self.name, "--states",
                 f"{s['states']:.0f}", "--time-limit",
                 str(60 * s["minutes"])] + ["--sample"] * s["sample"]
        resume = [shlex.split(more)[1:]] if " resume " in more else []
        if not self.is_running():
            self.task = asyncio.create_task(self.solve([*resume, solve]))

    def listen(self, line: str) -> bool:
        """Takes a line of solve. True, once: stop it."""
        if "steps/s" in line or "[#" in line:
            self.line = line
        else:
            self.messages.append(line)
        is_asked = self.stop == "asked"
        self.stop = "sent" if is_asked else self.stop
        return is_asked

    async def solve(self, commands: list[list[str]]) -> None:
        """Runs commands one by one, and reads how far the newest run is."""
        self.end = self.stop = ""
        self.history.clear()
        diagnose_at = 0.0
        while commands and not self.end:
            work = asyncio.create_task(self.tessera(
                *commands.pop(0), listen=self.listen))
            while not work.done():
                await asyncio.wait([work], timeout=1.0)
                now = time.monotonic()
                if self.runs() and now > diagnose_at:
                    out, _ = await self.tessera("diagnose", "--json",
                                                self.runs()[-1])
                    self.checks = {c["name"]: c["value"] for c in json.loads(
                        out or '{"checks": []}')["checks"]}
                    diagnose_at = 11 * time.monotonic() - 10 * now
                chi2 = re.search(r"chi2 ([\d.]+)", self.line)
                self.history.append([now, chi2 and float(chi2[1]),
                                     self.checks.get("rhat")])
            self.end = work.result()[1]
        self.line = ""


def guard(inner: Any, token: str, cookie: str) -> Any:
    """An application that answers only browsers that came with the token,
    which a cookie then keeps, and no page of another site."""
    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        answer = inner
        if scope["type"] != "lifespan":
            request = HTTPConnection(scope)
            own = f"http://{request.headers.get('host')}"
            came, has = (hmac.compare_digest(text.encode(), token.encode())
                         for text in (request.query_params.get("token", ""),
                                      request.cookies.get(cookie, "")))
            if came:
                answer = responses.RedirectResponse(request.url.path)
                answer.set_cookie(cookie, token, httponly=True,
                                  samesite="strict")
            elif not has or request.headers.get("origin", own) != own:
                answer = responses.PlainTextResponse(
                    "Open the address that tessera gui printed.", 403)
        await answer(scope, receive, send)
    return guarded


def names() -> list[str]:
    """All projects, newest first."""
    files = sorted(Path().glob("*/project.json"), reverse=True,
                   key=lambda file: file.stat().st_mtime)
    return [file.parent.name for file in files]


@app.get("/files/{name}/{path:path}")
def file(name: str, path: str) -> Any:
    """A file of a project: shown if tessera wrote it, else downloaded."""
    folder, whole = Path(name).resolve(), Path(name, path).resolve()
    if name not in names() or folder not in whole.parents or (
            not whole.is_file()):
        raise HTTPException(404)
    is_shown = whole.suffix in (".svg", ".html") and (
        folder / "input" not in whole.parents)
    return responses.FileResponse(
        whole, filename=None if is_shown else whole.name, headers={
            "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"})


class Window(ui.element, component="gui.js"):
    """One tab on a project: gui.js shows the state, and sends actions."""

    def __init__(self, project: Project):
        super().__init__()
        self.project = project
        self.on("act", self.act)
        with self:
            upload(project)
        self.show()
        ui.timer(0.5, self.show)

    def show(self) -> None:
        state = self.project.state()
        if state != self._props.get("state"):
            self._props["state"] = state
            self.update()

    async def act(self, event: Any) -> None:
        p = self.project
        (name, *words), said = event.args, ""
        if name == "start":
            p.start(*words)
        elif name == "stop":
            p.stop = p.stop or "asked"
        elif name in ("states", "minutes"):
            p.settings[name] = float(words[0])
            p.save()
        elif name == "export":
            run = f"{p.name}/{p.read('verdict.json')['states']}"
            draws = "best" if words[0] == "best" else "even:20"
            file = f"{p.name}/models/{p.name}-{draws.replace(':', '-')}.pdb"
            _, said = await p.tessera("export", "-q", run, "--draws", draws,
                                      "-o", file)
            ui.download(f"/files/{file}")
        elif p.is_locked():
            said = "The runs of this project use these files and parts."
        elif name == "parts":
            async with p.lock:
                said = await p.set_parts(*words)
            p.settings["parts"] = p.settings["parts"] if said else words
            p.save()
        else:
            if name == "remove" and words[0] in p.inputs():
                p.remove(words[0])
            elif name == "resolution":
                p.settings[name] = float(words[0])
            elif name == "d2o":
                p.settings["d2o"][words[0]] = words[1]
            elif name == "look":
                p.settings["parts"] = None
            await p.look()
        if said:
            ui.notify(said, type="warning", multi_line=True)
        self.show()


def upload(project: Optional[Project] = None) -> None:
    """The place for files; without a project they begin one."""
    async def take(event: Any) -> None:
        files, target = event.files, project
        if target is None:
            first = min(files, key=lambda f: role(f.name) != "model").name
            stem = safe_name(first).split(".")[0]
            name = next(f"{stem}{end}" for end in ("", *range(-2, -9999, -1))
                        if not Path(f"{stem}{end}").exists())
            target = projects[name] = Project(name)
        if target.is_locked():
            return
        await target.add(files)
        event.sender.reset()
        if project is None:
            ui.navigate.to(f"/project/{target.name}")
        await target.look()
    ui.upload(label="Drop files here, or press +", multiple=True,
              auto_upload=True, on_multi_upload=take).props("flat bordered")


def frame() -> None:
    ui.add_css(Path(__file__).with_name("gui.css"))
    ui.colors(primary="#3b6ea5")
    with ui.header().classes("items-center"):
        ui.link("tessera", "/").classes("text-white text-xl no-underline")


@ui.page("/")
def home() -> None:
    frame()
    with ui.element("section").classes("w-full"):
        upload()
        ui.label(f"Projects in {Path().resolve()}:")
        for name in names():
            ui.link(name, f"/project/{name}")


@ui.page("/project/{name}")
def project(name: str) -> None:
    if name not in names():
        raise HTTPException(404)
    if name not in projects:
        projects[name] = Project(name)
        background_tasks.create(projects[name].look())
    frame()
    Window(projects[name])


@app.on_shutdown
async def stop_all() -> None:
    for p in projects.values():
        if p.is_running():
            p.stop = p.stop or "asked"
            await p.task


def main(words: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        prog="tessera gui", description="A window in the browser, from a model "
        "and a curve to an answer. No data leave this machine.")
    add = parser.add_argument
    add("folder", nargs="?", default="~/tessera",
        help="of all projects (default ~/tessera)")
    add("--port", type=int, default=0, help="default: any free port")
    add("--no-browser", action="store_true", help="only print the address")
    options = parser.parse_args(words)
    program()  # an error if it is missing
    folder = Path(options.folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", options.port))
        port, token = probe.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}/?token={token}"
    app.add_middleware(guard, token=token, cookie=f"tessera-{port}")
    if not options.no_browser:
        app.on_startup(lambda: asyncio.to_thread(webbrowser.open, address))
    print(f"{address}\nCtrl-C ends the window.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        ui.run(host="127.0.0.1", port=port, title="tessera", show=False,
               reload=False, show_welcome_message=False)


if __name__ in {"__main__", "__mp_main__"}:
    main()
