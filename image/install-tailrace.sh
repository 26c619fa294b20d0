#!/bin/bash
# Tailrace itself, from the sources of this folder; an archive of the Java classes that it loads, with which it starts in
# half the time; then what is for the build only goes.
set -euo pipefail

python=/opt/tailrace/bin/python
"$python" -m pip install --no-cache-dir --no-deps --no-build-isolation .
# While an image is built its own name need not be known: Spark is given its address.
(cd / && SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_HOSTNAME=127.0.0.1 TAILRACE_ARCHIVES=/opt/archives JAVA_HOME=/opt/java \
    "$python" -m service.spark.driver.class_archive)
ls /opt/archives/spark/classes-*.jsa
rm -r /opt/archives/kafka
"$python" -m pip uninstall --yes setuptools pip
