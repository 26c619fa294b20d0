#!/bin/bash
# Tailrace itself, from the sources of this folder; an archive of the Java classes that it loads, with which it starts in
# half the time; then what is for the build only goes.
set -euo pipefail

python=/opt/tailrace/bin/python
"$python" -m pip install --no-cache-dir --no-deps --no-build-isolation .
(cd / && TAILRACE_ARCHIVES=/opt/archives JAVA_HOME=/opt/java "$python" -m service.spark.class_archive)
rm -r /opt/archives/kafka
"$python" -m pip uninstall --yes setuptools pip
