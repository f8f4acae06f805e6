# The command gateway, and nothing else: no shell, no files but the authorities that it trusts.
#
#   docker build -t gateway . && docker run --rm -p 8090:8090 gateway mock --addr :8090
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 GOFLAGS= go build -C cmd -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o /gateway ./gateway

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /gateway /gateway
USER 65532:65532
ENTRYPOINT ["/gateway"]
