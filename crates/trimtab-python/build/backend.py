"""Builds the wheel: maturin's, with the program `trimtab` among its scripts, so that `uvx trimtab` and `pipx` work.

Takes what pip gives a PEP 517 backend; gives what maturin gives. Never downloads anything.

TRIMTAB_WHEEL_PROGRAM names a program that is built already; `none` builds a wheel without one. Otherwise cargo builds it, with the profile
that MATURIN_PEP517_ARGS names. A source distribution holds the library alone, so that a wheel from it has no program.
"""

import base64
import hashlib
import os
import pathlib
import shlex
import subprocess
import sys
import zipfile

import maturin
from maturin import (  # noqa: F401, re-exported: the rest of the interface is maturin's; an editable install has no program
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
WORKSPACE = PACKAGE.parent.parent
NAME = "trimtab.exe" if os.name == "nt" else "trimtab"


def profile():
    """Returns the profile that maturin is asked to build with, so that both share what they compile."""
    arguments = shlex.split(os.environ.get("MATURIN_PEP517_ARGS", ""))
    for place, argument in enumerate(arguments):
        if argument == "--profile":
            return arguments[place + 1]
        if argument.startswith("--profile="):
            return argument.split("=", 1)[1]
    return "release"


def program():
    """Returns the path of the program to pack, or None."""
    given = os.environ.get("TRIMTAB_WHEEL_PROGRAM")
    if given == "none":
        return None
    if given:
        return pathlib.Path(given)
    if not (WORKSPACE / "crates" / "trimtab" / "Cargo.toml").exists():
        print("trimtab: a source distribution has no program; only the Python package is built", file=sys.stderr)
        return None
    command = ["cargo", "build", "--locked", "--profile", profile(), "--package", "trimtab", "--bin", "trimtab", "--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=WORKSPACE, check=True, stdout=subprocess.PIPE, text=True).stdout
    paths = [line.split('"executable":"', 1)[1].split('"', 1)[0] for line in built.splitlines() if '"executable":"' in line]
    return pathlib.Path(paths[-1].replace("\\\\", "\\"))


def add_program(wheel, path):
    """Puts the program among the scripts of a wheel, which pip installs beside `python`."""
    distribution = "-".join(wheel.name.split("-")[:2])
    place = f"{distribution}.data/scripts/{NAME}"
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        # The list of files comes last, as its own specification asks.
        *files, record = sorted(old.infolist(), key=lambda info: info.filename.endswith(".dist-info/RECORD"))
        for info in files:
            out.writestr(info, old.read(info), zipfile.ZIP_DEFLATED)
        program = zipfile.ZipInfo(place, files[0].date_time)
        program.external_attr = 0o100755 << 16
        out.writestr(program, content, zipfile.ZIP_DEFLATED)
        lines = old.read(record).decode().splitlines()
        lines.insert(-1, f"{place},sha256={digest},{len(content)}")
        out.writestr(record, "\n".join(lines) + "\n", zipfile.ZIP_DEFLATED)
    new.replace(wheel)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel with the program among its scripts."""
    found = program()
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    if found is not None:
        add_program(pathlib.Path(wheel_directory) / name, found)
    return name
