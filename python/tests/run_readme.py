"""Runs the Python lines of a page and compares what they print with what the page says: run_readme.py PAGE"""

import contextlib
import io
import re
import sys
import tempfile


def check(page):
    text = open(page).read()
    found = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S)
    assert found, f"{page} has no Python lines with their output"
    for code, expected in found:
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), {})
        assert printed.getvalue() == expected, f"{page} says\n{expected}but the lines print\n{printed.getvalue()}"
    print(f"{page}: as printed there")


if __name__ == "__main__":
    check(sys.argv[1])
