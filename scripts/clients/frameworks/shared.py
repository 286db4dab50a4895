"""The question and the tool that all Python clients have in common."""

QUESTION = "Add up the values in all files."


def read_file(path: str) -> str:
    """Reads a file.

    Args:
        path: The file's path.
    """
    number = int("".join(filter(str.isdigit, path)))
    return "\n".join(f"{path} line {line}: the value is {number * 7919 + line * 104729}" for line in range(120))
