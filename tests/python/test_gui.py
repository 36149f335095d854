"""The window in a real browser, from upload to verdict; who is served what."""
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

pytest.importorskip("nicegui")

from tessera_saxs import gui  # noqa: E402


class Window:
    """A process of `tessera gui` on a folder."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tessera_saxs.gui", folder, "--no-browser"],
            stdout=subprocess.PIPE, text=True,
            env={key: value for key, value in os.environ.items()
                 if key != "PYTEST_CURRENT_TEST"})
        self.address = self.process.stdout.readline().strip()
        self.port = urlsplit(self.address).port
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("the window does not listen")

    def get(self, path, **headers):
        """Status and headers of an answer; redirections are followed."""
        client = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor())
        if headers.pop("token", True):
            client.open(self.address)
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with client.open(request) as answer:
                return answer.status, answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.headers

    def end(self):
        """Ctrl-C. Returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def window(projects):
    window = Window(projects)
    yield window
    assert window.end() == 0


@pytest.mark.parametrize("name, safe", [
    ("model.pdb", "model.pdb"), ("../../etc/passwd", "passwd"),
    ("C:\\data\\my curve.dat", "my_curve.dat"), (".hidden", "hidden"),
    ("-o.dat", "o.dat"), ("a\n;b=$(c).cif", "a_b_c_.cif"), ("..", "file"),
    ("", "file"), ("é" * 300 + ".pdb", "pdb")])
def test_names_of_uploads(name, safe):
    assert gui.safe_name(name) == safe


@pytest.mark.parametrize("name, role", [
    ("a.PDB", "model"), ("a.cif.gz", "model"), ("pae.json", "pae"),
    ("emd.map.gz", "map"), ("a.dat", "curve"), ("pdb", "curve")])
def test_roles_of_files(name, role):
    assert gui.role(name) == role


@pytest.mark.parametrize("words, message", [
    (["--port", "{port}"], "port"), (["--port", "99999"], "port"),
    (["{file}"], "File exists"), (["{file}/below"], "Not a directory")])
def test_errors_are_messages(window, tmp_path, words, message):
    (tmp_path / "file").touch()
    words = [word.format(port=window.port, file=tmp_path / "file")
             for word in words]
    found = subprocess.run([sys.executable, "-m", "tessera_saxs.gui",
                            "--no-browser", *words], capture_output=True,
                           text=True, cwd=tmp_path, env={
                               **os.environ, "HOME": str(tmp_path)})
    assert found.returncode == 2 and message in found.stderr
    assert "Traceback" not in found.stderr


def test_serves_only_who_has_the_token(window):
    assert window.get("/")[0] == 200
    assert window.get("/", token=False)[0] == 403
    assert window.get("/?token=guess", token=False)[0] == 403
    assert window.get("/_nicegui_ws/socket.io/?EIO=4&transport=polling",
                      token=False)[0] == 403
    upgrade = http.client.HTTPConnection("127.0.0.1", window.port)
    upgrade.request("GET", "/_nicegui_ws/socket.io/?EIO=4&transport=websocket",
                    headers={"Connection": "Upgrade", "Upgrade": "websocket",
                             "Sec-WebSocket-Version": "13",
                             "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="})
    assert upgrade.getresponse().status == 403
    upgrade.close()
    assert window.get("/", Origin="http://example.org")[0] == 403
    with socket.socket() as other:  # all of 127.0.0.0/8 is this machine
        assert other.connect_ex(("127.0.0.2", window.port)) != 0


def test_serves_only_files_of_projects(window, projects):
    (projects / "secret").mkdir()
    (projects / "secret" / "file").touch()
    project = projects / "mine"
    (project / "input").mkdir(parents=True)
    (project / "project.json").write_text("{}")
    (project / "input" / "page.html").touch()
    (project / "report.html").touch()
    (project / "link").symlink_to(projects / "secret" / "file")
    status, headers = window.get("/files/mine/report.html")
    assert status == 200 and "Content-Disposition" not in headers
    status, headers = window.get("/files/mine/input/page.html")
    assert status == 200 and "attachment" in headers["Content-Disposition"]
    for path in ("mine/%2e%2e/secret/file", "mine/..%2fsecret/file",
                 "%2e%2e/" + projects.name + "/secret/file", "mine/link",
                 "secret/file", "mine//etc/passwd", "mine", "mine/none"):
        assert window.get("/files/" + path)[0] == 404, path


@pytest.fixture
def browser():
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is missing")
    with api.sync_playwright() as playwright:
        api.expect.set_options(timeout=40_000)
        browser = playwright.chromium.launch(executable_path=program,
                                             args=["--no-sandbox"])
        yield browser.new_context()  # cookies, and tabs that share them
        browser.close()


def test_from_upload_to_verdict(browser, folder, tmp_path):
    from playwright.sync_api import expect
    errors, hosts = [], set()

    def visit(address):
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: hosts.add(
            urlsplit(request.url).hostname))
        page.goto(address)
        return page

    def button(name):
        return page.get_by_role("button", name=name, exact=True)

    def sampling():
        return page.get_by_text(re.compile(r"^sampling .* chi2 .* left"))

    def upload(*files):
        page.set_input_files("input[type=file]", [str(f) for f in files])

    window = Window(tmp_path)
    (tmp_path / "input").mkdir()
    bad = tmp_path / "input" / "my model.pdb"
    bad.write_text("ATOM  nonsense\n")
    page = visit(window.address)
    upload(bad, folder / "exp.dat")
    page.wait_for_url("**/project/my_model")
    project = tmp_path / "my_model"

    # The message of the program, then the right model in its place.
    expect(page.locator(".messages").first).to_contain_text("my_model.pdb")
    assert not button("Solve").is_visible()
    shutil.copy(folder / "atoms.pdb", bad)
    upload(bad)
    expect(page.get_by_alt_text("the fit")).to_be_visible()
    expect(page.get_by_text("reduced χ²")).to_be_visible()

    # Parts: a tap on the linker, a range by hand, and back.
    line = page.get_by_text("Bars are rigid")
    expect(line).to_contain_text("A:51-64")
    page.locator(".chain .flexible").click()
    assert page.get_by_label("residues").input_value() == "A:51-64"
    button("rigid").click()
    expect(line).not_to_contain_text("A:51-64")
    page.get_by_label("residues").fill("A:48-70")
    button("flexible").click()
    expect(line).to_contain_text("A:48-70")
    second = shutil.copy(folder / "exp.dat", tmp_path / "input" / "second.dat")
    for count in (2, 1):  # of curves; the correction stays
        upload(second) if count == 2 else button("remove").last.click()
        expect(page.get_by_alt_text("the fit")).to_have_count(count)
        expect(page.get_by_text("finding its parts")).to_be_hidden()
        assert '  flexible: ["A:48-70"]' in (project / "solve.yaml").read_text()
    button("as found").click()
    expect(line).to_contain_text("A:51-64")

    # Solve; stop; resume; a kill; the end of the window; another window.
    with open(project / "solve.yaml", "a") as config:
        config.write("sampler: {chains: 2, start: file, warmup: 100, "
                     "thin: 10}\n")
    page.get_by_label("states").fill("1")
    page.get_by_label("minutes").fill("0.25")
    button("Solve").click()
    expect(sampling()).to_be_visible()
    button("Stop").click()
    expect(button("Resume")).to_be_visible()
    expect(page.get_by_text("Stopped")).to_be_visible()
    button("Resume").click()
    tab = visit(page.url)
    expect(tab.get_by_role("button", name="Stop")).to_be_visible()
    page.close()
    page = tab
    expect(sampling()).to_be_visible()
    lock = (project / "1" / "run.lock").read_text()
    os.kill(int(re.search(r"pid (\d+)", lock)[1]), signal.SIGKILL)
    expect(page.get_by_text("SIGKILL")).to_be_visible()
    button("Resume").click()
    expect(sampling()).to_be_visible()
    assert window.end() == 0
    state = subprocess.run([gui.program(), "status", "my_model/1"],
                           cwd=tmp_path, capture_output=True, text=True)
    assert "interrupted" in state.stdout
    page.close()
    other = Window(tmp_path)
    try:
        page = visit(other.address)
        page.get_by_role("link", name="my_model").click()
        button("Resume").click()

        # The answer, its report, the models.
        report = page.get_by_role("link", name="Report", exact=True)
        expect(report).to_be_visible()
        verdict = (project / "verdict.txt").read_text().split("\n\n")
        shown = " ".join(page.locator("section").last.inner_text().split())
        assert " ".join(verdict[1].split()) in shown
        with page.expect_popup() as popup:
            report.click()
        expect(popup.value.get_by_text("Rigid model fits?")).to_be_visible()
        with page.expect_download() as download:
            button("20 models").click()
        models = open(download.value.path()).read()
        assert models.count("MODEL ") == 20
        page.set_viewport_size({"width": 390, "height": 800})  # a phone
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        assert other.end() == 0
    assert errors == [] and hosts <= {"127.0.0.1", None}  # None: data
