# mispair on an NVIDIA GPU: docker build -t mispair . && docker run --gpus all -v "$PWD:/work" mispair doctor
# It also runs without a GPU; docs/gpu.md says what was never tried on one.
FROM pytorch/pytorch:2.13.0-cuda12.9-cudnn9-runtime

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/mispair
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY configs configs
COPY experiments experiments
# torch is the image's: a build for another CUDA must not replace it.
RUN python -m pip freeze | grep -E "^(torch|triton)==" > /tmp/present.txt; \
    grep -v "^torch==" constraints.txt > /tmp/constraints.txt && \
    python -m pip install -c /tmp/constraints.txt -c /tmp/present.txt ".[encoders,serve]"

RUN useradd --create-home mispair
USER mispair
WORKDIR /work
ENTRYPOINT ["mispair"]
CMD ["--help"]
