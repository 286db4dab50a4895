"""A throwaway Python environment in which tiktoken finds its vocabulary without asking anyone but the package registries.

The vocabulary comes out of the crate bpe-openai, which the tests depend on.
"""

import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIKTOKEN = "0.14.0"


def environment(folder, *packages):
    """Makes the environment in a folder; returns its interpreter and the variables to run it with."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"tiktoken=={TIKTOKEN}", *packages], check=True)
    place_vocabulary(python, folder / "cache")
    return python, {**os.environ, "TIKTOKEN_CACHE_DIR": str(folder / "cache")}


def place_vocabulary(python, cache):
    """Puts the vocabulary where tiktoken looks for one it has fetched: under the hash of its address."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    packages = json.loads(metadata.stdout)["packages"]
    manifest = next(package["manifest_path"] for package in packages if package["name"] == "bpe-openai")
    vocabulary = gzip.decompress((pathlib.Path(manifest).parent / "data/o200k_base.tiktoken.gz").read_bytes())
    find = "import inspect, re, tiktoken_ext.openai_public as p; print(re.search(r'\"(\\S+o200k_base.tiktoken)\"', inspect.getsource(p)).group(1))"
    address = subprocess.run([python, "-c", find], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    cache.mkdir()
    (cache / hashlib.sha1(address.encode()).hexdigest()).write_bytes(vocabulary)
