"""The check command of a session: hands over the files that were written, and prints what is wrong with them."""

import json
import os
import sys
import urllib.request

NAMES = ("service.py", "tests.json", "left_out.json", "challenges.json")


def main() -> None:
    """Ask, print, and exit with 0 if all is well."""
    files = {}
    for name in NAMES:
        if os.path.isfile(name):
            with open(name, encoding="utf-8", errors="replace") as file:
                files[name] = file.read()
    body = json.dumps({"files": files}).encode()
    request = urllib.request.Request(f"{os.environ['CHECK_AT']}/check", body, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as response:
        report = json.load(response)
    sys.stdout.write(report["text"])
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
