#!/bin/sh
# Unpack a commit of a harness to /opt/harness and install it there into an environment of its own.
#   get-harness <owner/name> <commit> <python> <arguments of pip install>
set -eu
repository=$1 commit=$2 python=$3
shift 3
if [ -z "$commit" ]; then
    echo "$repository is pinned by nobody yet: build with --build-arg <BENCHMARK>_COMMIT=<the commit that you mean>" >&2
    exit 2
fi
mkdir -p /opt/harness
cd /opt/harness
python3 - "$HARNESS_SOURCE/$repository/archive/$commit.tar.gz" <<'END' | tar --extract --gzip --strip-components=1
import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
    shutil.copyfileobj(answer, sys.stdout.buffer)
END
echo "$commit" > .commit
uv venv --python "$python" .venv
uv pip install --python .venv "$@"
