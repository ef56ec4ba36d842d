"""The wheel, the sdist and the editable install contain every subpackage."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAPPED = ("dispatch", "backends", "conformance")
PATIENCE = 300.0

# Imports every module of the installation, and prints where the package lies and how many modules there are.
IMPORT_ALL = """
import importlib, pkgutil, pathlib, numpy_dist
OPTIONAL = (
    *("numpy_dist.backends.cupy", "numpy_dist.comm.mpi", "numpy_dist.conformance", "numpy_dist.notebook."),
    "numpy_dist.__main__",
)
names = [module.name for module in pkgutil.walk_packages(numpy_dist.__path__, "numpy_dist.")]
for name in names:
    if not name.startswith(OPTIONAL):
        importlib.import_module(name)
import numpy_dist.conformance, numpy_dist.dispatch.functions, numpy_dist.backends
print(pathlib.Path(numpy_dist.__file__).parent)
print(len(names))
"""


def settings() -> dict[str, object]:
    """The table `tool.setuptools` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def folders_with_packages() -> set[str]:
    """The names of the packages that lie in the repository, as they are imported."""
    names = set()
    for top in ("numpy_dist", *MAPPED):
        for file in (ROOT / top).rglob("__init__.py"):
            parts = file.parent.relative_to(ROOT).parts
            if not any((ROOT / Path(*parts[: i + 1])).is_symlink() for i in range(len(parts))):
                names.add(".".join(parts if top == "numpy_dist" else ("numpy_dist", *parts)))
    return names


def call(*command: object, folder: Path = ROOT) -> str:
    """Run a command and return what it printed; its errors are shown where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def test_every_package_is_listed() -> None:
    assert set(settings()["packages"]) == folders_with_packages()  # type: ignore[call-overload]


def test_the_links_are_tracked_and_relative() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    lines = call("git", "ls-files", "-s", *(f"numpy_dist/{name}" for name in MAPPED)).splitlines()
    assert [line.split()[0] for line in lines] == ["120000"] * len(MAPPED)
    for name in MAPPED:
        assert call("git", "show", f":numpy_dist/{name}") == f"../{name}"


@pytest.mark.parametrize("name", MAPPED)
def test_short_names_are_refused(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    assert f"ImportError: import numpy_dist.{name}" in done.stderr


@pytest.fixture(scope="module")
def built(source: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    folder = source / "dist"
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder=source)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The interpreter of an empty environment that sees this one's packages, but not its editable installs."""
    venv.create(tmp_path / "environment", with_pip=False, symlinks=True)
    python = tmp_path / "environment" / "bin" / "python"
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "others.pth").write_text("\n".join(sorted(ours)))
    return python


def install(python: Path, *arguments: object) -> None:
    """Install into the environment of `python`, without dependencies."""
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--quiet"]
    call(sys.executable, "-m", "pip", "--python", python, "install", *options, *arguments)


def check_installation(python: Path, where: Path, folder: Path) -> None:
    """All modules can be imported, from `where`, and the command is there."""
    package, count = call(python, "-I", "-c", IMPORT_ALL, folder=folder).splitlines()
    assert Path(package).is_relative_to(where)
    assert int(count) > len(folders_with_packages())
    assert call(python.parent / "numpy-dist", "--version", folder=folder).startswith("numpy-dist ")


@pytest.mark.packaging
def test_the_wheel_is_complete(built: tuple[Path, Path], source: Path) -> None:
    _, wheel = built
    # Compared with the copy: in the checkout, tests beside this one write and rename bytecode.
    call(sys.executable, "-m", "check_wheel_contents", "--package", "numpy_dist", wheel, folder=source)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for package in folders_with_packages():
        assert f"{package.replace('.', '/')}/__init__.py" in names
    assert "numpy_dist/py.typed" in names
    stubs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "numpy_dist").rglob("*.pyi")}
    assert "numpy_dist/__init__.pyi" in stubs <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"numpy_dist"}


@pytest.mark.packaging
def test_the_sdist_holds_tests_and_licence(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "tests/packaging/test_packaging.py"} <= names
    assert not any("__pycache__" in name for name in names)


@pytest.mark.packaging
def test_the_wheel_installs(built: tuple[Path, Path], environment: Path, tmp_path: Path) -> None:
    install(environment, built[1])
    check_installation(environment, environment.parents[1], tmp_path)


@pytest.mark.packaging
def test_the_editable_install_works(environment: Path, source: Path, tmp_path: Path) -> None:
    install(environment, "--editable", source)
    check_installation(environment, source, tmp_path)
