# The page and the service (docs/serve.md), with the ready estimator in it; a model of your own is mounted.
FROM python:3.12-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
# Where there is a GPU, name an index of PyTorch for its CUDA: --build-arg TORCH_INDEX=…
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" torch==2.13.0 \
    && pip install --no-cache-dir "$(echo /wheels/negsample-*.whl)[sample,serve]" \
    && useradd --create-home --uid 10001 negsample
USER 10001
WORKDIR /home/negsample
ENV HF_HUB_OFFLINE=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["negsample", "serve", "--host", "0.0.0.0", "--port", "8000"]
