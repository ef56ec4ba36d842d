"""Draw ``profile.png``: the page of the example in ``docs/profile.md``, and print its advice, which that page quotes.

``python docs/pictures/draw_profile.py`` runs the example on two ranks of two threads each, twice, so that its kernels
are there, and needs the package playwright and Chromium (Debian's, or the one that the variable CHROMIUM names).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1150, 1180
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking".split()
MOST_BYTES = 60_000


def example() -> str:
    """The program of the page."""
    found = re.search(r"```python\n(\"\"\"Heat in a plate.*?)```", (HERE.parent / "profile.md").read_text(), re.DOTALL)
    if found is None:
        raise SystemExit("docs/profile.md has no program that begins with 'Heat in a plate'")
    return found[1]


def profile(folder: Path) -> Path:
    """Run the program with a profile; returns the page."""
    (folder / "heat.py").write_text(example())
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", "2", "--profile", "out", "heat.py"]
    environment = {**os.environ, "NUMPY_DIST_NUM_THREADS": "2"}
    for compiling in ("first", "auto"):
        environment["NUMPY_DIST_COMPILE"] = compiling
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=600)
    return folder / "out" / "profile.html"


def picture(page: Path, user: Path) -> Image.Image:
    """What a browser shows of it, once a loop was clicked on."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            user, executable_path=chromium, args=FLAGS, viewport={"width": WIDTH, "height": HEIGHT}
        )
        view = browser.new_page()
        view.goto(page.as_uri())
        for text in view.locator("#advice li").all_inner_texts():
            print("*", text)
        box = view.locator("#timeline").bounding_box()
        assert box is not None
        place = view.evaluate(
            "(() => { const s = rows[0].spans.find(s => s[3] === 0 && s[0] > data.length / 4);"
            " return [place(s[0] + s[1] / 2), rows[0].top + 5]; })()"
        )
        view.mouse.click(box["x"] + place[0], box["y"] + place[1])
        shown = view.screenshot()
        browser.close()
    return Image.open(io.BytesIO(shown)).convert("RGB")


def save(image: Image.Image) -> None:
    """Write a picture of few colours, which is small."""
    for colours in (64, 32, 16):
        small = io.BytesIO()
        image.quantize(colours).save(small, "PNG", optimize=True)
        if small.tell() < MOST_BYTES:
            break
    else:
        raise SystemExit(f"profile.png has {small.tell()} bytes")
    (HERE / "profile.png").write_bytes(small.getvalue())
    print("profile.png", small.tell())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as found:
        save(picture(profile(Path(found)), Path(found) / "user"))
