"""table.py PROGRAM: the cases of the tables on standard input, two at a time, each in a folder of
its own beside the files, which none may change. Prints a line a row.

    [NAME]             a table, or more rows of it
    NAME = COMMAND     a column: a line of the shell, where FILE is ../FILE, $T the program, and
                       `own` what the case needs for itself
    FILE,FILE STATUS STATUS ... | PATTERN
                       a row: the exit status of each column (-: not asked; one status: that of
                       all) and what the message of those that fail says (where none does: what
                       all say), as a regular expression
    STATUS | PATTERN | COMMAND    a case by itself

Any other status is a failure, as those of crashes (139), aborts (134) and sanitizers (99) are; so
is more than 20 s (100 s of a program built with sanitizers). What fails says so in one message; what refuses a file leaves no other behind;
answers about maps hold no nan. A row is skipped where one of its files could not be made."""
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys

WORK = os.getcwd()


LIMIT = 100 if "/san-" in sys.argv[1] else 20  # seconds


def state():
    return {os.path.join(folder, name): os.lstat(os.path.join(folder, name)).st_mtime_ns
            for folder, _, names in os.walk(WORK) for name in names}


def wrong(number, line, want, pattern):
    """What is wrong with a case; "": nothing."""
    folder = "%s/case.%d" % (WORK, number)
    os.mkdir(folder)
    process = subprocess.Popen(
        line, shell=True, cwd=folder, env=dict(os.environ, T=sys.argv[1]), text=True,
        errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "no end within %d s" % LIMIT
    finally:
        left = set(os.listdir(folder)) - {"own"}
        shutil.rmtree(folder)
    got, said = process.returncode, re.findall("^tessera[ a-z]*: .*", err, re.M)
    shown = (re.findall(".*(?:ERROR|runtime error): .*", err) + said + [err[-200:]])[0][:200]
    if got != want:
        return "exit status %d, not %d: %s" % (got, want, shown)
    if want > 1 and len(said) != 1:
        return "%d messages: %s" % (len(said), err[-200:])
    if want != 1 and not re.search(pattern, said[0] if said else err):
        return "'%s' is not in: %s" % (pattern, shown)
    if want in (64, 65, 66, 78) and left:
        return "leaves %s" % left
    if want == 0 and " map " in line and re.search(r"\bnan\b", out, re.I):
        return "answers with nan: " + out[-200:]
    return ""


def rows(text):
    """Of each row its name and its cases: (column, line, status, pattern)."""
    tables = {}
    for line in filter(None, (l.strip() for l in text.splitlines())):
        if line[0] == "[":
            columns = tables.setdefault(line, {})
        elif re.match(r"\w+ = ", line):
            columns.update([line.split(" = ", 1)])
        elif re.match(r"\d+ *\|", line):
            status, pattern, command = re.split(r" *\| +", line, maxsplit=2)
            yield command, [("", command, int(status), pattern)]
        elif line[0] != "#":
            cells, pattern = (p.strip() for p in line.split(" |", 1))
            files, *status = cells.split()
            status *= len(columns) if len(status) == 1 else 1
            assert len(status) == len(columns), line
            for file in files.split(","):
                path = file if file[0] in "2<>$" else "../" + file
                if path[0] == "." and file != "nowhere" and not os.path.lexists(file):
                    print("skip %s: it is not there" % file)
                    continue
                yield file, [(c, columns[c].replace("FILE", path), int(s),
                              pattern if s != "0" or set(status) <= {"0", "-"} else "")
                             for c, s in zip(columns, status) if s != "-"]


before, number, bad = state(), 0, 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    table = []
    for name, cases in rows(sys.stdin.read()):
        table.append((name, [(case[0], pool.submit(wrong, number + k, *case[1:]))
                             for k, case in enumerate(cases)]))
        number += len(cases)
    for name, cases in table:
        failed = ["    %s: %s" % (column, r.result()) for column, r in cases if r.result()]
        print("not ok" if failed else "ok", "%s, %d commands" % (name, len(cases)), flush=True)
        print("".join(line + "\n" for line in failed), end="")
        bad += len(failed)
changed = [path for path, when in state().items() if before.get(path) != when]
print("not ok" if changed else "ok", number, "cases leave the files as they were", *changed)
sys.exit(bad > 0 or changed != [])
