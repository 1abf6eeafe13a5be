# syntax=docker/dockerfile:1
# The program and the default model:
#   docker build -t bertcl . && docker run --rm bertcl answer -q "Who maintains OpenCL?"
# `--target debian` is the same with a package manager, for images with a GPU's driver on top.
# tools/check_packages runs the same commands in bare systems. PoCL's compiler needs no sanitizers (clang/*/lib, 43 MB).
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git
WORKDIR /src/bertcl
COPY . .
RUN tools/package

FROM debian:12-slim AS debian
COPY --from=build /src/bertcl/build/packages/*.deb /packages/
RUN apt-get update \
 && apt-get install -y --no-install-recommends busybox-static \
      /packages/bertcl_*.deb /packages/libbertcl0_*.deb /packages/bertcl-model-*.deb \
 && rm -rf /packages /var/lib/apt/lists/* /usr/lib/llvm-*/lib/clang/*/lib \
 && useradd --create-home --uid 1000 bertcl \
 && install -d -o bertcl -g root -m 775 /cache
# By number, which runAsNonRoot of Kubernetes asks for. OpenShift takes another one, of the group 0.
USER 1000:1000
WORKDIR /home/bertcl
EXPOSE 8080
# Of `serve` at its usual port, by no proxy (-Y). Kernels are built before the first "ready", hence the start period.
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
  CMD ["busybox", "wget", "-Y", "off", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/health"]
ENTRYPOINT ["bertcl"]
CMD ["--help"]

# Only what runs, half of that.
FROM debian AS collect
USER root
COPY deploy/image_root /
RUN /image_root /image

FROM scratch
COPY --from=collect /image /
ENV LANG=C.UTF-8 PATH=/usr/bin
USER 1000:1000
WORKDIR /home/bertcl
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
  CMD ["busybox", "wget", "-Y", "off", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/health"]
ENTRYPOINT ["bertcl"]
CMD ["--help"]
