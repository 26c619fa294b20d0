#!/bin/bash
# What runs Tailrace on a bare Debian: Python, a Java runtime, an init, and a user without rights.
set -euo pipefail

export DEBIAN_FRONTEND=noninteractive

# Debian keeps one version of a package, so that a pinned one could soon not be had any more.
apt-get update
apt-get install --yes --no-install-recommends openjdk-17-jre-headless python3 tini
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*.log /var/log/apt

ln -s /usr/lib/jvm/java-17-openjdk-* /opt/java
useradd --system --uid 185 --gid 0 --create-home --home-dir /var/lib/tailrace tailrace
