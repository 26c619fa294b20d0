# The image of driver and executors alike: Python, a Java runtime, the locked packages and the archives that Spark needs
# to read Kafka. Nothing is fetched when it runs.

FROM python:3.11-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# Java for Ivy, which fetches the archives. Debian keeps one version of a package: pinning it would break the build.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY requirements-build.lock requirements.lock ./
# Without Spark Connect's shell (58 MB) and Spark's examples.
RUN python -m venv /opt/tailrace \
    && /opt/tailrace/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements-build.lock \
    && /opt/tailrace/bin/pip install --no-cache-dir --require-hashes --no-deps --no-build-isolation \
        -r requirements.lock \
    && rm -rf /opt/tailrace/lib/python3.11/site-packages/pyspark/jars/connect-repl \
        /opt/tailrace/lib/python3.11/site-packages/pyspark/examples

COPY service/__init__.py service/machine.py service/
COPY service/archives service/archives
# A place of your own to fetch archives from: --build-arg TAILRACE_MAVEN_MIRROR=...
ARG TAILRACE_MAVEN_MIRROR=
RUN TAILRACE_ARCHIVES=/opt/archives /opt/tailrace/bin/python -m service.archives spark

COPY pyproject.toml requirements.in ./
COPY operators operators
COPY service service
RUN /opt/tailrace/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && ln -s /usr/lib/jvm/java-17-openjdk-* /opt/java \
    && useradd --system --uid 185 --gid 0 --create-home --home-dir /var/lib/tailrace tailrace

COPY --from=build /opt/tailrace /opt/tailrace
COPY --from=build /opt/archives /opt/archives
COPY image/entrypoint image/decom.sh /opt/

# SPARK_HOME is also where the executor's class path begins.
ENV PATH=/opt/tailrace/bin:$PATH \
    JAVA_HOME=/opt/java \
    SPARK_HOME=/opt/tailrace/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/tailrace/bin/python \
    TAILRACE_ARCHIVES=/opt/archives \
    PYTHONUNBUFFERED=1

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Tailrace" \
      org.opencontainers.image.description="Streaming SQL from Kafka to Kafka on Spark, exactly once" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

USER 185
WORKDIR /var/lib/tailrace
EXPOSE 8080
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/entrypoint"]
CMD ["--help"]
