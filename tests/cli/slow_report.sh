#!/bin/sh
# The report of a run on real data, with states and their weights, works in a browser.
. tests/cli/expect.sh
if [ ! -d "$shared/saxs" ] ||
    ! tessera devices --no-test >devices.txt 2>&1; then
    echo "skip the report of the ligase: no device, or $shared/saxs is absent"
    exit 0
fi
. "$source/tests/cli/browser.sh"
tessera run "$source/configs/ligase.yaml" --output ligase --quiet \
    --set sampler.chains=2 --set sampler.warmup=20 --set sampler.draws=30 \
    --set sampler.thin=1 --set sampler.temperatures=2 \
    --set output.trajectory_every=1 >ligase.txt 2>&1 &&
    tessera report ligase --quiet >out.txt
check "a report of the ligase" test $? -eq 0
play ligase
judge ligase
exit $bad
