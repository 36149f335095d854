"""Runs the commands of docs/gallery.md for the site (tools/site.py)."""
import glob
import os
import re
import shutil
import subprocess


def filled(text, work, program, data):
    """The page with what each command ("    $ ...") printed and drew.

    work     folder in which the commands run, emptied; pictures stay there
    program  build/tessera, which commands call tessera
    data     folder of measured curves and models, called data in a command
    """
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.symlink(os.path.abspath(data), os.path.join(work, "data"))
    bin_folder = os.path.dirname(os.path.abspath(program))
    environment = dict(os.environ, PATH=bin_folder + os.pathsep + os.environ["PATH"])

    def run(match):
        command = re.sub(r"\\\n *", "", match[1])
        before = set(glob.glob(work + "/*.svg"))
        done = subprocess.run(command, shell=True, cwd=work, env=environment,
                              text=True, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"docs/gallery.md: {command}\n{done.stderr}")
        block = re.sub("(?m)^", "    ", done.stdout)
        pictures = sorted(set(glob.glob(work + "/*.svg")) - before)
        folder = os.path.basename(work)
        return match[0] + block.rstrip(" ") + "".join(
            f"\n![{command}]({folder}/{os.path.basename(picture)})\n"
            for picture in pictures)

    return re.sub(r"^    \$ ((?:.*\\\n)*.*)\n", run, text, flags=re.M)
