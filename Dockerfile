# CompoWorld's images, one file:
#   job                 every data stage, the report, planning and merging: no torch, no Node
#   author              job + Node + the coding agent pi: synthesize with `author: pi`
#   train               job + torch, TRL, DeepSpeed: sft, grpo
#
#   docker build --target job -t compoworld:0.1.0 .
#
# All run as user 10001 on a read-only root file system and write below /tmp and where volumes are mounted.

# Debian or a descendant with Python >= 3.11 and its venv. A base that is built on your own carries your own
# certificates and package indexes. Give it by digest (name@sha256:...) where builds have to be repeatable.
ARG BASE=docker.io/library/python:3.12-slim-bookworm


# The base with the user that all images run as.
FROM ${BASE} AS base
RUN groupadd --gid 10001 compoworld \
    && useradd --uid 10001 --gid 10001 --create-home --shell /usr/sbin/nologin compoworld
ENV PATH=/opt/compoworld/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    XDG_CACHE_HOME=/tmp/cache
WORKDIR /home/compoworld


# What we depend on, at the versions and hashes of locks/: a layer that changes only with them.
FROM base AS dependencies
COPY locks/job.txt /locks/
RUN python3 -m venv /opt/compoworld \
    && pip install --require-hashes --only-binary :all: --requirement /locks/job.txt


# Our own code as a wheel, and the wheel as files of the environment.
FROM dependencies AS application
COPY locks/build.txt /locks/
RUN python3 -m venv /build && /build/bin/pip install --require-hashes --only-binary :all: --requirement /locks/build.txt
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY compoworld_core compoworld_core
COPY jobs jobs
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && pip install --no-deps --prefix /application /wheels/*.whl


FROM base AS job
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="CompoWorld" \
      org.opencontainers.image.description="Composes executable services into verified tasks and trajectories." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=dependencies /opt/compoworld /opt/compoworld
COPY --from=application /application /opt/compoworld
USER 10001:10001
ENTRYPOINT ["compoworld"]
CMD ["--help"]
