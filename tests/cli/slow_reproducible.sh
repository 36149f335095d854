#!/bin/sh
# Two builds of the same sources, in folders of different names and lengths, at different
# times, and with files listed in another order by the file system, are the same bytes.
. tests/cli/expect.sh
if is_sanitized; then
    echo "skip reproducible: a sanitizer's build"
    exit 0
fi
for folder in one two/with/a/longer/name; do
    mkdir -p "$folder"
    (cd "$source" && git ls-files -z | xargs -0 cp --parents -t "$work/$folder")
    check "a build in $folder" make -s -C "$folder" -j"$(nproc)" COMMIT= all manual
done
for file in tessera tessera-train tessera-bench libtessera.so.0 manual/tessera.1; do
    check "$file is the same" cmp "one/build/$file" "two/with/a/longer/name/build/$file"
done
