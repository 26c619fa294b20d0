#!/bin/bash
# The virtual environment /opt/tailrace, exactly as the lock files of this folder say.
set -euo pipefail

export DEBIAN_FRONTEND=noninteractive PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

apt-get update
apt-get install --yes --no-install-recommends python3-venv

python3 -m venv /opt/tailrace
pip=(/opt/tailrace/bin/python -m pip)
"${pip[@]}" install --require-hashes --no-deps -r requirements-build.lock
# Without isolation: what builds a package is locked too.
"${pip[@]}" install --require-hashes --no-deps --no-build-isolation -r requirements.lock

# Spark Connect's shell (58 MB) and Spark's examples.
rm -r /opt/tailrace/lib/python3.*/site-packages/pyspark/{jars/connect-repl,examples}
