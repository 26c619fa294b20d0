#!/bin/bash
# Runs in an executor before Kubernetes stops it, where decommissioning is on: asks Spark to leave, and waits until it has left.
set -euo pipefail

for process in /proc/[0-9]*; do
    if [[ "$(cat "$process/comm" 2>/dev/null)" == java ]]; then
        kill -PWR "${process##*/}"
        timeout 60 tail --pid="${process##*/}" --follow /dev/null || true
    fi
done
