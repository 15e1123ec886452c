"""Runs the Python blocks of a page and compares their output with the text blocks after them: run_readme.py PAGE"""

import contextlib
import io
import os
import re
import sys
import tempfile


def check(page):
    text = open(page).read()
    examples = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S)
    assert examples, f"{page} has no Python block with its output"
    for code, expected in examples:
        printed = io.StringIO()
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            os.chdir(folder)
            try:
                exec(compile(code, str(page), "exec"), {})
            finally:
                os.chdir(before)
        assert printed.getvalue() == expected, f"{page}: expected\n{expected}but the block prints\n{printed.getvalue()}"
    print(f"{page}: {len(examples)} blocks print the documented output")


if __name__ == "__main__":
    check(sys.argv[1])
