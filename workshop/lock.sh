#!/bin/sh
# Maintainers: write all lock files anew. No index and no path of this machine stands in them.
cd -- "$(dirname -- "$0")/.." || exit 1
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-annotate --custom-compile-command 'sh workshop/lock.sh' "$@"
}
compile pyproject.toml workshop/requirements.in -o requirements.lock &&
    compile workshop/requirements-test.in -c requirements.lock -o workshop/requirements-test.lock &&
    compile --no-deps workshop/requirements-measure.in -o workshop/requirements-measure.lock &&
    compile --no-deps workshop/requirements-model.in -o workshop/requirements-model.lock &&
    compile workshop/requirements-site.in -c requirements.lock -c workshop/requirements-test.lock \
        -o workshop/requirements-site.lock &&
    compile workshop/requirements-browser.in -c requirements.lock \
        -c workshop/requirements-test.lock -c workshop/requirements-site.lock \
        -o workshop/requirements-browser.lock
