# dynident in a container:  docker build -t dynident .
# then, in the folder of your files:  docker run --rm -v "$PWD":/data dynident identify study.toml -o out
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir "/src[excite,hdf5,mujoco,parquet,ros]" && rm -rf /src
WORKDIR /data
ENTRYPOINT ["dynident"]
