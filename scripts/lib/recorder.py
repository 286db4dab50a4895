"""What the scripts that record real clients have in common.

Takes pinned packages and a function that drives a client; installs them into a temporary folder, makes
a copy of the scratch project there, and runs the function in namespaces that have loopback as their
only network and end with all that was started in them. Writes recordings with the temporary folder
renamed to /home/dev.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIB = Path(__file__).resolve().parent
FIXTURES = LIB.parent.parent / "fixtures" / "recordings"


def main(packages, record):
    """Runs `record(home, target)`; `--keep` leaves the temporary folder, FOLDER replaces the target."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    target = Path(arguments[0] if arguments else FIXTURES).resolve()
    if "--inside" in sys.argv:
        return record(Path(os.environ["RECORD_HOME"]), target)
    home = Path(tempfile.mkdtemp(prefix="record-"))
    try:
        install(home / "npm", packages)
        command = [*alone(), sys.executable, sys.argv[0], "--inside", str(target)]
        return subprocess.run(command, env=os.environ | {"RECORD_HOME": str(home)}).returncode
    finally:
        if "--keep" in sys.argv:
            print(f"kept {home}", file=sys.stderr)
        else:
            shutil.rmtree(home)


def install(folder, packages):
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    subprocess.run(["npm", "install", *quiet, "--prefix", folder, *packages], check=True)


def alone():
    """Gives the prefix that runs a command with loopback as its only network, if that is allowed."""
    spaces = ["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    bring_up = ["unshare", *spaces, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*bring_up, "true"], capture_output=True).returncode == 0:
        return bring_up
    print("no network namespace here: the client is only asked to be quiet", file=sys.stderr)
    return []


def scratch_project(home):
    """Copies the project `shelf` into a git repository of one commit and returns its folder."""
    root = home / "shelf"
    shutil.copytree(LIB / "shelf", root)
    git = ["git", "-c", "user.name=dev", "-c", "user.email=dev@localhost", "-C", root]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "shelf: first version"]):
        subprocess.run([*git, *command], check=True)
    return root


def run(command, folder, env, said=""):
    """Runs a command to its end and returns what it printed."""
    # A file, not a pipe: opencode ends before a full pipe is drained and cuts its export at 64 KiB.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+") as given:
        given.write(said)
        given.seek(0)
        done = subprocess.run(command, cwd=folder, env=env, stdin=given, stdout=out, timeout=300)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}")
        out.seek(0)
        return out.read()


def write(path, text, home):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(str(home), "/home/dev"))
    print(f"{path}: {path.stat().st_size} bytes", file=sys.stderr)
