# syntax=docker/dockerfile:1
# The program and the default model: docker build -t bertcl . && docker run --rm bertcl answer -q "Who maintains OpenCL?"
# tools/check_packages runs the same commands in bare systems. PoCL's compiler needs no sanitizers (clang/*/lib, 43 MB).
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git
WORKDIR /src/bertcl
COPY . .
RUN tools/package

FROM debian:12-slim
COPY --from=build /src/bertcl/build/packages/*.deb /packages/
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      /packages/bertcl_*.deb /packages/libbertcl0_*.deb /packages/bertcl-model-*.deb \
 && rm -rf /packages /var/lib/apt/lists/* /usr/lib/llvm-*/lib/clang/*/lib \
 && useradd --create-home bertcl
USER bertcl
WORKDIR /home/bertcl
ENTRYPOINT ["bertcl"]
CMD ["--help"]
