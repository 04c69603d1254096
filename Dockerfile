# A server for one model: not run by root, with a read-only root.
#
#   docker build -t dpcml .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -p 8000:8000 -v "$PWD/model:/model:ro" dpcml
#
# Compiled kernels go to /tmp; mount a volume there to keep them between starts. Without any writable folder it works
# too, and compiles at every start.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/dpcml \
 && /opt/dpcml/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve]"

FROM python:3.12-slim
COPY --from=build /opt/dpcml /opt/dpcml
ENV PATH=/opt/dpcml/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 NUMBA_CACHE_DIR=/tmp/dpcml-kernels
USER 10001:10001
WORKDIR /
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4).close()"]
CMD ["dpcml", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
