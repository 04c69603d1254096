# A server for one model: not run by root, with a read-only root.
#
#   docker build -t dpcml .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -p 8000:8000 -v "$PWD/model:/model:ro" dpcml
#
# Kernels are compiled when the image is built, for the processor that builds it. Their folder is a volume, which starts
# with what the image has and can be written: what another processor or model needs besides is compiled once and kept.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/dpcml \
 && /opt/dpcml/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve]" \
 && NUMBA_CACHE_DIR=/opt/dpcml/kernels /opt/dpcml/bin/dpcml doctor --warm \
 && chown -R 10001:10001 /opt/dpcml/kernels

FROM python:3.11-slim
COPY --from=build /opt/dpcml /opt/dpcml
ENV PATH=/opt/dpcml/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 NUMBA_CACHE_DIR=/opt/dpcml/kernels
VOLUME /opt/dpcml/kernels
USER 10001:10001
WORKDIR /
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4).close()"]
CMD ["dpcml", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
