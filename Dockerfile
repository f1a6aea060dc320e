# syntax=docker/dockerfile:1

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=0.1.0-dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/holdfast ./cmd/holdfast \
    && install -d -m 0700 /out/data

FROM scratch
COPY --from=build /out/holdfast /holdfast
# A named volume takes owner and mode of this directory when it is first mounted.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
# gRPC, and HTTP for /metrics, /livez and /readyz.
EXPOSE 7001 7080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/holdfast"]
CMD ["acceptor", "--listen", "0.0.0.0:7001", "--http", "0.0.0.0:7080", "--data-dir", "/data"]
