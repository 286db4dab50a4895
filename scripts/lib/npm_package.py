#!/usr/bin/env python3
"""Packs a program for npm.   npm_package.py PROGRAM VERSION TARGET FOLDER

Takes the program and what it was built for; gives two tarballs: `@trimtab/PLATFORM` with the program, and `trimtab`, which runs it and
names every platform as an optional dependency, so that npm installs the one that fits. Nothing is downloaded at install time.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What rustc calls a platform, and what Node does. The programs for Linux of a release are static, so that one serves every distribution.
PLATFORMS = {
    "x86_64-unknown-linux-musl": ("linux", "x64"),
    "aarch64-unknown-linux-musl": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
    "x86_64-pc-windows-msvc": ("win32", "x64"),
}


def pack(folder, package, out):
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", out], cwd=folder, check=True)


def main():
    program, version, target, out = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.tgz"):
        old.unlink()
    # A program built for this machine's C library serves this machine.
    known = PLATFORMS.get(target) or PLATFORMS.get(target.replace("-gnu", "-musl"))
    if known is None:
        sys.exit(f"npm_package.py: no platform of Node for {target}")
    system, processor = known
    common = {
        "version": version,
        "license": "MIT OR Apache-2.0",
        "description": "Cuts the cost of long coding-agent sessions without breaking them",
    }
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        name = "trimtab.exe" if system == "win32" else "trimtab"
        own = folder / "platform"
        (own / "bin").mkdir(parents=True)
        shutil.copy(program, own / "bin" / name)
        (own / "bin" / name).chmod(0o755)
        (own / "README.md").write_text(f"The program `trimtab` for {system} on {processor}. Install the package `trimtab` instead.\n")
        pack(own, {"name": f"@trimtab/{system}-{processor}", **common, "os": [system], "cpu": [processor], "files": ["bin"]}, out)
        main_package = folder / "main"
        (main_package / "bin").mkdir(parents=True)
        shutil.copy(ROOT / "packaging/npm/trimtab.js", main_package / "bin/trimtab.js")
        (main_package / "bin/trimtab.js").chmod(0o755)
        shutil.copy(ROOT / "packaging/npm/README.md", main_package)
        pack(main_package, {
            "name": "trimtab", **common,
            "keywords": ["llm", "agents", "context-window", "prompt-cache", "claude-code", "codex"],
            "bin": {"trimtab": "bin/trimtab.js"},
            "files": ["bin"],
            "engines": {"node": ">=18"},
            "optionalDependencies": {f"@trimtab/{'-'.join(each)}": version for each in PLATFORMS.values()},
        }, out)
    print(*sorted(out.glob("*.tgz")), sep="\n")


main()
