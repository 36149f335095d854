#!/usr/bin/env python3
"""Stretches of a report beside each other: report.png of the README, of the run
that docs/tutorial.md makes, and report_map.png of docs/density.md, of the run
that is there.

    docs/figures/report.py report.png lar/2/report.html
    docs/figures/report.py report_map.png runs/adk/report.html

Needs chromium and Pillow.
"""
import os
import subprocess
import sys
import tempfile

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
HEIGHT = 10000
WIDTHS = {"report.png": 1400, "report_map.png": 1030}  # pixels, of the window
STRETCHES = {"report.png": ((0, 780),),
             "report_map.png": ((870, 1765),)}  # from, to; pixels down the page


def main(name, page):
    stretches, width = STRETCHES[name], WIDTHS[name]
    with tempfile.TemporaryDirectory() as folder:
        shot = os.path.join(folder, "page.png")
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        subprocess.run(
            ["chromium", "--headless", *root, "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={folder}", f"--window-size={width},{HEIGHT}",
             "--virtual-time-budget=8000", f"--screenshot={shot}",
             "file://" + os.path.abspath(page)],
            check=True, stderr=subprocess.DEVNULL)
        picture = Image.open(shot).convert("RGB")
    height = max(low - high for high, low in stretches)
    both = Image.new("RGB", (len(stretches) * width, height), "white")
    for k, (high, low) in enumerate(stretches):
        both.paste(picture.crop((0, high, width, low)), (k * width, 0))
    small = both.resize((both.width * 3 // 5, both.height * 3 // 5), Image.LANCZOS)
    small.quantize(256).save(os.path.join(HERE, name), optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
