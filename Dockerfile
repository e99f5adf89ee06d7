# docker build -t nori_dyn . && docker run --rm nori_dyn plan --help
# With a compiler, so that ticks are native code; robots of your own are mounted: -v "$PWD:/work".
FROM python:3.12-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir "/src[plot,robots]" && rm -r /src
WORKDIR /work
ENTRYPOINT ["nori-dyn"]
CMD ["--help"]
