#!/bin/bash
# The Java archives that Spark needs to read Kafka and to keep checkpoints in S3 and Google Cloud Storage, fetched and
# checked, into folders of /opt/archives. Those of Kafka itself are for the build only.
set -euo pipefail

TAILRACE_ARCHIVES=/opt/archives /opt/tailrace/bin/python -m service.archives spark s3a gs kafka
