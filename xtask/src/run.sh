#!/usr/bin/env bash
# Runs what `cargo xtask gpu-bundle` put beside this file, on a machine with an sm_90 device and no Rust.
#
#   run.sh                    every test program, then `hopper-sparse info`
#   run.sh tests [FILTER]     every test program, or the tests whose name contains FILTER
#   run.sh sanitize           the tests on small shapes under compute-sanitizer (refused driver calls are no finding: the
#                             library asks for a kernel's parameters until there is none)
#   run.sh peer FILE ARGS...  a peer's script
#   run.sh COMMAND ARGS...    hopper-sparse COMMAND ARGS...
#
# Logs go to $OUT (beside this file where unset). HOPPER_MATRICES names the folder of matrix files; LIMIT is the time
# a program may take, in seconds (60).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$here/out}
mkdir -p "$out"
# Programs come compressed; the first run unpacks them.
for packed in "$here"/hopper-sparse.gz "$here"/tests/*.gz; do
    [ ! -e "$packed" ] || { gunzip --force "$packed" && chmod +x "${packed%.gz}"; }
done
export HOPPER_REQUIRE_GPU=1 PYTHONUNBUFFERED=1 RUST_BACKTRACE=1
# The vendor's libraries, for `bench`: where they are missing, it says so.
if libraries=$(python3 "$here/peers/library_path.py" 2>/dev/null); then
    export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
passed=0
failed=0

# step NAME PROGRAM ARGS...: runs a program under the time limit, shows its output as it comes, and keeps it.
step() {
    local name=$1 start=$SECONDS status
    shift
    echo "== $name"
    timeout --kill-after=5 "${LIMIT:-60}" stdbuf -oL -eL "$@" 2>&1 | tee "$out/$name.log"
    status=${PIPESTATUS[0]}
    if [ "$status" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo "== $name: exit $status after $((SECONDS - start)) s"
}

tests() {
    local test
    for test in "$here"/tests/*; do
        step "$(basename "$test")" "$test" "$@"
    done
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
    "")
        tests
        step info "$here/hopper-sparse" info
        ;;
    tests) tests "$@" ;;
    sanitize)
        for tool in memcheck racecheck synccheck; do
            for test in "$here"/tests/*; do
                step "$tool-$(basename "$test")" \
                    compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 99 "$test" small --test-threads 1
            done
        done
        ;;
    peer)
        script=$1
        shift
        step "peer-$(basename "$script" .py)" python3 "$here/peers/$script" "$@"
        ;;
    *) step "$command" "$here/hopper-sparse" "$command" "$@" ;;
esac
echo "$passed programs passed, $failed failed"
[ "$failed" -eq 0 ]
