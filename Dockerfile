# The server alone, without torch: docs/packaging.md
# Not pinned by digest: it was written where no registry can be asked for one. Add it where builds must be repeatable.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY packaging/requirements-serve.txt ./
RUN python -m venv /opt/fcdd && /opt/fcdd/bin/pip install --no-cache-dir --require-hashes -r requirements-serve.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/fcdd/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim-bookworm
COPY --from=build /opt/fcdd /opt/fcdd
ENV PATH=/opt/fcdd/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 ORT_DISABLE_TELEMETRY=1
# A number, so that Kubernetes' runAsNonRoot can see that it is not root.
USER 10001:10001
WORKDIR /models
EXPOSE 8000
# -P: no module is looked for among the models.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-P", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
# It listens beyond loopback, so it does not start without FCDD_TOKEN.
ENTRYPOINT ["fcdd", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/models/model.onnx"]
