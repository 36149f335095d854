# A report works in a browser without a network: figures zoom, the molecule turns, and
# nothing is fetched. Sourced after expect.sh; the test ends here without a browser.
if ! command -v chromium >/dev/null; then
    echo "skip the report in a browser: chromium is missing"
    exit $bad
fi

# A copy of the page that also plays the user, in a narrow window: drags over
# the fit, looks at the range of q, double clicks, turns the molecule by keys,
# and writes down what it saw.
cat >user.html <<'END'
<script>
setTimeout(function () {
  var fit = tesseraFigures.fit, said = [];
  var box = fit.svg.getBoundingClientRect();
  function say(name, value) { said.push(name + '=' + value); }
  function mouse(type, x, y) {
    (/down|dbl|point/.test(type) ? fit.svg : window).dispatchEvent(
      new MouseEvent(type.replace('point', 'move'), {bubbles: true,
        cancelable: true, view: window, clientX: x,
        clientY: y || box.top + 150, button: 0}));
  }
  var all = fit.range.slice();
  say('marks', fit.svg.querySelectorAll('path, circle').length > 60);
  mouse('mousedown', box.left + 250);
  mouse('mousemove', box.left + 300);
  mouse('mousemove', box.left + 400);
  mouse('mouseup', box.left + 400);
  say('zoomed', fit.range[0] > all[0] && fit.range[1] < all[1] &&
    fit.range[0] < fit.range[1]);
  mouse('dblclick', box.left + 300);
  say('back', fit.range[0] === all[0] && fit.range[1] === all[1]);
  // The curve is as near as the measured value where it passes through it.
  say('point', Array.from(fit.svg.querySelectorAll('.points circle')).some(
    function (circle) {
      var point = circle.getBoundingClientRect();
      mouse('mousepoint', point.left + 2, point.top + 2);
      return /^measuredq .*[0-9]I\(q\) [0-9.]+$/.test(
        document.getElementById('tip').textContent.trim());
    }));
  var names = Object.keys(tesseraFigures);
  say('figures', names.length);
  var list = document.getElementById('fits'), second = tesseraFigures.fit_2;
  function choose(which) {
    list.value = which;
    list.dispatchEvent(new Event('change'));
  }
  zoom(fit, 0.05, 0.1);
  if (second) choose('1');
  say('chosen', !second || list.options.length === 2 &&
    second.figure.offsetHeight > 100 && fit.figure.offsetHeight === 0 &&
    second.range[1] === 0.1);
  if (second) choose('0');
  zoom(fit, all[0], all[1]);
  say('narrow', document.documentElement.scrollWidth <= innerWidth &&
    fit.width < fit.full);
  document.getElementById('figure-fit').dispatchEvent(
    new KeyboardEvent('keydown', {key: '+'}));
  say('keys', fit.range[0] > all[0] && fit.range[1] < all[1]);
  var m = tesseraMolecule, picture = m.canvas.toDataURL();
  m.canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}));
  say('molecule', m.draws.length > 3 && laidOver(1) < 0.2 &&
    laidOver(0) > 1 && m.domains.some(function (_, d) {
      return laidOver(d + 1) > 1;
    }));
  var canvas = m.canvas.getBoundingClientRect(), told = '';
  for (var x = 10; x < canvas.width && !told; x += 10)
    for (var y = 10; y < canvas.height && !told; y += 10) {
      m.canvas.dispatchEvent(new PointerEvent('pointermove',
        {clientX: canvas.left + x, clientY: canvas.top + y}));
      if (!document.getElementById('tip').hidden)
        told = document.getElementById('tip').textContent;
    }
  say('tip', /^residue A:[0-9]+ [A-Z]{3}displacement [0-9.]+ /.test(told));
  requestAnimationFrame(function () {
    say('turned', m.canvas.toDataURL() !== picture);
    document.body.setAttribute('data-user', said.join(' '));
  });
  say('fetched', performance.getEntriesByType('resource').filter(
    function (entry) { return !/^data:/.test(entry.name); }).length);
}, 1500);
/* How far the first domain strays from the start's, where all draws are laid
 * over all residues (0) or one domain. */
function laidOver(over) {
  var m = tesseraMolecule, worst = 0;
  var start = m.superposed(m.draws[0].conformations[0], over);
  m.draws.forEach(function (draw) {
    draw.conformations.forEach(function (c) {
      m.domains[0].residues.forEach(function (i) {
        for (var k = 0; k < 3; k++)
          worst = Math.max(worst, Math.abs(m.superposed(c, over)[3 * i + k] -
            start[3 * i + k]));
      });
    });
  });
  return worst;
}
</script>
END
root=
[ "$(id -u)" -ne 0 ] || root=--no-sandbox
browse() { # FILE [WIDTH,HEIGHT]
    HOME=$work timeout 100 chromium --headless $root --disable-gpu \
        --disable-gpu-compositing --disable-software-rasterizer \
        --disable-dev-shm-usage --disable-background-networking \
        --disable-component-update --disable-sync --no-first-run \
        --user-data-dir="$work/profile" --enable-logging=stderr \
        --window-size="${2:-500,900}" --virtual-time-budget=3000 \
        --dump-dom "file://$work/$1" >dom.html 2>browser.txt
}
# play DIR: its report, by that user; said: what was seen.
play() {
    sed -e '/<\/body><\/html>/d' "$1/report.html" >played.html
    cat user.html >>played.html
    echo "</body></html>" >>played.html
    browse played.html
    said=$(grep -o 'data-user="[^"]*"' dom.html)
}
judge() { # DIR
    check "the browser shows $1" test -n "$said"
    for want in marks=true zoomed=true back=true point=true chosen=true narrow=true \
        keys=true molecule=true turned=true tip=true fetched=0; do
        check "in the browser: $want" sh -c "echo '$said' | grep -q '$want'"
    done
    check "all figures are in the page" sh -c \
        "echo '$said' | grep -q 'figures=$(ls "$1"/report/*.svg | wc -l)'"
    check "no word on the console" sh -c '! grep -q ":CONSOLE" browser.txt'
    [ $bad -eq 0 ] || {
        echo "    $said"
        grep ":CONSOLE" browser.txt
    }
}
