#!/bin/sh
# Whether the tests notice errors. Breaks the sources in one place at a time, in a
# copy, builds, runs the suite, and prints which test programs fail that pass
# without the error. A line of the table is FILE|SED EXPRESSION|WHAT IT BREAKS.
#     tests/mutate.sh [FIRST [LAST]]    lines of the table; all by default
# SLOTS=4 breaks four places beside each other; a place takes some six minutes of
# processor. TESTS: the programs and scripts to run, all by default. Prints
# "NUMBER caught|MISSED|unbuilt WHAT: TESTS".
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
slots=${SLOTS:-1}
JOBS=$((($(nproc) + slots - 1) / slots))
export JOBS root work
sed -n '/^# TABLE$/,/^# END$/s/^#|//p' "$0" | cat -n |
    sed -n "${1:-1},${2:-\$}p" >"$work/table"
# TABLE
#|src/sampler/ladder.c|s/(log_lik\[b\] - log_lik\[a\])/(log_lik[a] - log_lik[b])/|ratio of an exchange inverted
#|src/sampler/ladder.c|s/change < 0.0 ? exp(change)/change < 0.0 ? exp(0.5 * change)/|exchanges too often
#|src/sampler/ladder.c|s/for (int k = parity; k/for (int k = 0; k/|exchanges of even pairs alone
#|src/sampler/chain.c|s/c->beta \* (c->trial.log_lik - c->now/(c->trial.log_lik - c->now/|decision without the temperature
#|src/sampler/chain.c|s/c->proposal.log_ratio + (is_possible/(is_possible/|decision without the Hastings correction
#|src/sampler/chain.c|s/uniform(c->rng) < alpha;/uniform(c->rng) < 0.97 * alpha + 0.01;/|acceptance a little wrong
#|src/sampler/chain.c|s/change + ratio + to - from/change + ratio + to/|density of a parameter's way back left out
#|src/sampler/parameters.c|s/\*to = log(share) + log1p(-share) - /*to = 0.0 - /|Jacobian of the weights of states
#|src/sampler/population.c|s/step \* top + log(sum/step * top + 0.9 * log(sum/|evidence of the populations
#|src/sampler/population.c|s/p->weight\[i\] \* p->per_group \/ sum;/1.0;/|resampling without weights
#|src/sampler/all_atom_chain.c|s/- beta \* log_c -/- 0.9 * beta * log_c -/|exchange with the all-atom chain
#|src/moves/pivot.c|s/= tsr_prior_torsion_log_of(s->prior, current, i)/= 0.9 * tsr_prior_torsion_log_of(s->prior, current, i)/|ratio of drawn torsions
#|src/moves/regrow.c|s/i < span->first + span->count; i++)/i < span->first + span->count - 1; i++)/|ratio of a regrown stretch lacks a residue
#|src/moves/side_chain.c|s/s->prior, i, current->side/s->prior, i, proposed->side/|ratio of a drawn side chain
#|src/moves/concerted.c|s/here.at\[own\].log_f - found/0.9 * here.at[own].log_f - found/|determinant of a closure
#|src/moves/rigid_body.c|s/c->log_z - back + /c->log_z - 0.9 * back + /|choice among closures of a rigid part
#|src/prior/clash.c|s/: s->unmoved\[u\] & ~bits/: s->unmoved[u] | bits/|bodies that move count as resting
#|src/core/random.c|s/(uint32_t)(s->block >> 32)/0/|random numbers repeat after 2^34
#|src/gpu/engine_page_tile.c|s/if (dirty->covered\[b\] < tsr_tile_block/if (0 \&\& dirty->covered[b] < tsr_tile_block/|a block moved in part counts as moved whole
#|src/gpu/engine_page_tile.c|s/s->age\[block\]++;/s->age[block] += 0;/|differences without end
#|src/gpu/engine_page_tile.c|s/s->extent = s->proposed_extent;/(void)0;/|extent of accepted positions
#|src/gpu/engine_page_tile.c|s/tsr_dirty_tiles_flip(&s->dirty, &e->shape, s->select);/(void)0;/|selectors that do not flip
#|kernels/page_tile_simd.cl|s/lane\[l\] = l == i - j ? 0 : 1/lane[l] = 1/|bodies scatter with themselves twice
#|kernels/page_tile_simd.cl|s/before, f, i, -1)/before, f, i, -1 + 1e-4f)/|differences leave a rest
#|src/engine/engine_reference.c|s/times_over_x\[j\] \* s \* over_k : p->multiplicity/times_over_x[j] * s * over_k : 0.999 * p->multiplicity/|exact engine at q = 0
#|src/store/draw_log.c|s/checksum == tsr_checksum(0, to, r->size)/1/|checksums of draws not compared
#|src/store/draw_log.c|s/head.checksum != checksum_of(head)/0/|checksums of records' heads not compared
#|src/store/draw_log.c|s/if (fsync(log->fd) != 0 ||/if (0 ||/|log not brought to the disk
#|src/store/hdf5_store.c|s/is_sealed \&\& sum != wanted/0/|seals not compared
#|src/files/file.c|s/ \&\& fsync(fileno(w->out)) != 0/ \&\& 0/|a file renamed before it is on the disk
#|src/store/hdf5_store.c|s/keep != NULL \&\& r->first + r->n > keep\[r->kind\]/0/|draws behind the checkpoint kept
#|src/files/file.c|s/why = rename(w->beside, w->path) != 0/why = 0/|a file not replaced
# END

# run_suite FOLDER: the names of the programs that fail there.
run_suite() {
    ( cd "$1" && make -j"$JOBS" all check-build >make.log 2>&1 || exit 1
      BUILD=build PYTHON=${PYTHON:-python3} LIMIT=240 tests/run.sh \
          ${TESTS:-tests/cli/test_*.sh $(ls tests/*/test_*.c |
              sed 's,^,build/,; s,\.c$,,')} 2>&1 |
          sed -n 's/^failed: //p' | tr ' ' '\n' | sort )
}

# mutate SLOT: takes line after line of the table until none is left.
mutate() {
    slot=$work/$1/tree
    while mkdir "$work/lock" 2>/dev/null || { sleep 0.1; continue; }; do
        line=$(sed -n 1p "$work/table"); sed -i 1d "$work/table"
        rmdir "$work/lock"
        [ -n "$line" ] || return 0
        number=$(echo "$line" | cut -f1 | tr -d ' ')
        line=$(echo "$line" | cut -f2-)
        file=${line%%|*} what=${line##*|}
        change=${line#*|} change=${change%|*}
        cp "$slot/$file" "$work/$1/kept"
        sed -i "$change" "$slot/$file"
        if cmp -s "$slot/$file" "$work/$1/kept"; then
            echo "$number not found: $what"
        elif failed=$(run_suite "$slot"); then
            failed=$(echo "$failed" | comm -23 - "$work/before" | xargs)
            if [ -n "$failed" ]; then
                echo "$number caught $what: $failed"
            else
                echo "$number MISSED $what"
            fi
        else
            echo "$number unbuilt: $what"
        fi
        cp "$work/$1/kept" "$slot/$file"
    done
}

for slot in $(seq "$slots"); do
    mkdir -p "$work/$slot/tree"
    (cd "$root" && tar cf - --exclude=./.git --exclude=./runs . ) |
        tar xf - -C "$work/$slot/tree"
    ln -s "$(realpath "$root/../shared")" "$work/$slot/shared" 2>/dev/null
done
run_suite "$work/1/tree" >"$work/before"
echo "fail without an error: $(tr '\n' ' ' <"$work/before")"
for slot in $(seq "$slots"); do mutate "$slot" & done
wait
