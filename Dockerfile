# The image of driver and executors alike: Debian with Python and a Java runtime, the locked packages and the archives
# that Spark needs to read Kafka. Nothing is fetched when it runs. What is installed how is in image/.

FROM debian:bookworm-slim AS runtime
RUN --mount=type=bind,source=image,target=/src/image /src/image/install-runtime.sh

FROM runtime AS build
WORKDIR /src
COPY image/install-packages.sh image/
COPY requirements-build.lock requirements.lock ./
RUN image/install-packages.sh

# Its own step: most changes leave the packages and archives of the build before in place.
COPY image/install-archives.sh image/
COPY service/__init__.py service/
COPY service/host/__init__.py service/host/machine.py service/host/
COPY service/archives service/archives
# A place of your own to fetch archives from: --build-arg TAILRACE_MAVEN_MIRROR=...
ARG TAILRACE_MAVEN_MIRROR=
RUN image/install-archives.sh

COPY image/install-tailrace.sh image/
COPY pyproject.toml requirements.in LICENSE README.md ./
COPY operators operators
COPY service service
RUN image/install-tailrace.sh

FROM runtime
COPY --from=build /opt/tailrace /opt/tailrace
COPY --from=build /opt/archives /opt/archives
COPY image/entrypoint image/decom.sh /opt/

# The driver finds Spark by its package, an executor by SPARK_HOME.
ENV PATH=/opt/tailrace/bin:$PATH \
    JAVA_HOME=/opt/java \
    SPARK_HOME=/opt/tailrace/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/tailrace/bin/python \
    TAILRACE_ARCHIVES=/opt/archives \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

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
